package frame

import (
	"bytes"
	"testing"
)

// TestSizeProbe: a question counts if it is as long as it says and names both lives, an answer
// whatever its length; nothing else is one.
func TestSizeProbe(t *testing.T) {
	const long = 1370
	probe := func(h Hello, size, length int) []byte {
		b := introduction(make([]byte, ServicesSize+SizeProbeSize))
		m := h.Message()
		m.Put(b[HeaderSize:])
		at := HeaderSize + MessageHeaderSize
		(&Services{}).Put(b[at:])
		SizeProbe{size}.Put(b[at+ServicesSize:])
		return append(b, make([]byte, length-len(b))...)
	}
	const short = HeaderSize + MessageHeaderSize + ServicesSize + SizeProbeSize
	asks, tells := Hello{Life: 7, Peer: 8}, Hello{Life: 7, Peer: 8, Tells: true}
	if b := probe(asks, long, long); !bytes.Equal(b[short-SizeProbeSize:short], []byte{0x50, 0, 0x5a, 0x05}) {
		t.Errorf("%x", b[:short])
	}
	for _, c := range []struct {
		name string
		b    []byte
		size int // 0: none
	}{
		{"question", probe(asks, long, long), long},
		{"answer", probe(tells, long, short), long},
		{"question that was cut", probe(asks, long, long-1), 0},
		{"question with more behind it", probe(asks, long, long+1), 0},
		{"of nobody that is known", probe(Hello{Life: 7}, long, long), 0},
		{"goodbye", probe(Hello{Life: 7, Peer: 8, Leaves: true}, long, long), 0},
		{"one that refers", probe(Hello{Life: 8, Peer: 8, Refers: true}, long, long), 0},
		{"without a size", probe(tells, long, short)[:short-1], 0},
		{"without services", introduction(nil), 0},
		{"another mark", append(probe(tells, long, short)[:short-SizeProbeSize], 0x51, 0, 1, 1), 0},
		{"another form", append(probe(tells, long, short)[:short-SizeProbeSize], 0x50, 1, 1, 1), 0},
	} {
		f, err := Parse(c.b)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := f.SizeProbe()
		if ok != (c.size > 0) || ok && p.Size != c.size {
			t.Errorf("%s: %+v, %v", c.name, p, ok)
		}
		if ok && len(f.Padding()) != len(c.b)-short {
			t.Errorf("%s: %d bytes of padding", c.name, len(f.Padding()))
		}
	}
}
