package rpcrdma_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/xdr"
)

// said writes details down.
func said(d *rpcrdma.Details) string {
	if d == nil {
		return "none"
	}
	var b strings.Builder
	var fields func([]rpcrdma.Field)
	fields = func(all []rpcrdma.Field) {
		for i, f := range all {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(f.Name + " ")
			switch f.Kind {
			case rpcrdma.NumberField:
				fmt.Fprint(&b, f.Number)
			case rpcrdma.GroupField:
				b.WriteString("(")
				fields(f.Fields)
				b.WriteString(")")
			default:
				b.WriteString(f.Text)
			}
		}
	}
	if fields(d.Fields); d.Cut {
		b.WriteString(" ...")
	}
	return b.String()
}

var fh = []byte{0x3f, 0x2a}

// dirName is a handle and a name.
func dirName(name string) func(*xdr.Encoder) {
	return func(e *xdr.Encoder) {
		e.Opaque(fh)
		e.String(name)
	}
}

func numbers(all ...uint32) func(*xdr.Encoder) {
	return func(e *xdr.Encoder) {
		for _, n := range all {
			e.Uint32(n)
		}
	}
}

// TestArguments checks what is read of Calls, and how far where the message ends early.
func TestArguments(t *testing.T) {
	s := newScript(t)
	s.connect(private, private)
	for i, c := range []struct {
		procedure uint32
		args      []func(*xdr.Encoder)
		want      string
	}{
		{3, []func(*xdr.Encoder){dirName("group")}, "dir 3f2a, name group"},
		{3, []func(*xdr.Encoder){numbers(100)}, " ..."},
		{2, []func(*xdr.Encoder){func(e *xdr.Encoder) { e.Opaque(fh) }, numbers(1, 0o755, 0, 0, 1, 0, 9, 1, 2, 60, 0, 0)}, "fh 3f2a, set (mode 0755, size 9, atime server's, mtime 1970-01-01T00:01:00Z)"},
		{8, []func(*xdr.Encoder){dirName("x"), numbers(2, 1, 2)}, "dir 3f2a, name x, how EXCLUSIVE, verifier 0x0000000100000002"},
		{8, []func(*xdr.Encoder){dirName("x"), numbers(1, 1, 0o644, 0, 0, 0, 0, 0)}, "dir 3f2a, name x, how GUARDED, set (mode 0644)"},
		{11, []func(*xdr.Encoder){dirName("x"), numbers(4, 0, 0, 0, 0, 0, 0, 5, 6)}, "dir 3f2a, name x, type character device, major 5, minor 6"},
		{14, []func(*xdr.Encoder){dirName("a"), dirName("b")}, "from_dir 3f2a, from a, to_dir 3f2a, to b"},
		{16, []func(*xdr.Encoder){func(e *xdr.Encoder) { e.Opaque(fh) }, numbers(0, 7, 0, 8, 512)}, "dir 3f2a, cookie 7, verifier 0x0000000000000008, count 512"},
		{21, []func(*xdr.Encoder){func(e *xdr.Encoder) { e.Opaque(fh) }, numbers(0, 7)}, "fh 3f2a, offset 7 ..."},
		{22, nil, "none"},
	} {
		s.send(client, v1(client, uint32(i)), callOf(uint32(i), nfs, 3, c.procedure, c.args...))
		if got := said(s.last.Arguments()); got != c.want {
			t.Errorf("procedure %d: %s, want %s", c.procedure, got, c.want)
		}
		s.send(server, reply1(server, uint32(i), 64), replyOf(uint32(i), numbers(2)))
	}
}

// TestDetailsInChunks checks that the arguments of a Call at Position 0 are known with its Reply, and with them the user, and so are targets of symbolic
// links that a Read chunk and a Write chunk have moved.
func TestDetailsInChunks(t *testing.T) {
	s := newScript(t)
	s.connect(private, private)
	place := codec.Segment{Handle: 5, Length: 400, Offset: 0x1000}

	h := v1(client, 1)
	h.Type, h.Reads = codec.TypeNoMsg, []codec.ReadChunk{{Segments: codec.Chunk{place}}}
	s.send(client, h, nil)
	if d := s.last.Arguments(); d != nil {
		t.Errorf("before it was fetched: %s", said(d))
	}
	var auth xdr.Encoder
	for _, n := range []uint32{1, 0, 2, nfs, 3, 3, 1, 36, 7, 4} {
		auth.Uint32(n)
	}
	auth.Fixed([]byte("host"))
	numbers(1000, 100, 3, 4, 5, 6, 0, 0)(&auth)
	dirName("group")(&auth)
	s.fetch(server, place, auth.Bytes())
	s.send(server, reply1(server, 1, 64), replyOf(1, numbers(2, 0)))
	if got, want := said(s.last.Arguments()), "dir 3f2a, name group"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := said(s.last.Credential()), "flavor AUTH_SYS, uid 1000, gid 100, groups (0 4, 1 5, 2 6), machine host"; got != want {
		t.Errorf("%s, want %s", got, want)
	}

	call := callOf(2, nfs, 3, 10, dirName("link"), numbers(0, 0, 0, 0, 0, 0, 6))
	h = v1(client, 2)
	h.Reads = []codec.ReadChunk{{Position: uint32(len(call)), Segments: codec.Chunk{{Handle: 5, Length: 6, Offset: 0x1000}}}}
	s.send(client, h, call)
	if got, want := said(s.last.Arguments()), "dir 3f2a, name link, target_in_chunks 6"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.fetch(server, codec.Segment{Handle: 5, Offset: 0x1000}, []byte("target"))
	s.send(server, reply1(server, 2, 64), replyOf(2, numbers(0, 0, 0, 0, 0)))
	if got, want := said(s.last.Arguments()), "target target"; got != want {
		t.Errorf("%s, want %s", got, want)
	}

	h = v1(client, 3)
	h.Writes = []codec.Chunk{{place}}
	s.send(client, h, callOf(3, nfs, 3, 5, func(e *xdr.Encoder) { e.Opaque(fh) }))
	s.write(server, place, []byte("target"))
	h = reply1(server, 3, 64)
	h.Writes = []codec.Chunk{{{Handle: 5, Length: 6, Offset: 0x1000}}}
	s.send(server, h, replyOf(3, numbers(0, 0, 6)))
	if got, want := said(s.last.Results()), "target_in_chunks 6, target target"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestResults checks what is read of Replies, of a status that is an error too, and how many entries of a directory there are.
func TestResults(t *testing.T) {
	s := newScript(t)
	s.connect(private, private)
	for i, c := range []struct {
		procedure uint32
		results   []func(*xdr.Encoder)
		want      string
	}{
		{7, []func(*xdr.Encoder){numbers(0, 0, 0, 4096, 2, 1, 2)}, "count 4096, stable FILE_SYNC, verifier 0x0000000100000002"},
		{6, []func(*xdr.Encoder){numbers(0, 0, 9, 1, 9)}, "count 9, eof true, data 9"},
		{21, []func(*xdr.Encoder){numbers(0, 0, 0, 3, 4)}, "verifier 0x0000000300000004"},
		{16, []func(*xdr.Encoder){numbers(0, 0, 0, 5, 1, 0, 1), func(e *xdr.Encoder) { e.String("one") }, numbers(0, 1, 1, 0, 2), func(e *xdr.Encoder) { e.String("two") }, numbers(0, 2, 0, 1)},
			"verifier 0x0000000000000005, entries 2, eof true"},
		{16, []func(*xdr.Encoder){numbers(0, 0, 0, 5, 1, 0, 1), func(e *xdr.Encoder) { e.String("one") }, numbers(0, 1, 1, 0)}, "verifier 0x0000000000000005, entries 1 ..."},
		{3, []func(*xdr.Encoder){numbers(2, 0)}, "none"},
		{6, []func(*xdr.Encoder){numbers(70, 1, 1)}, "attributes (type file) ..."},
	} {
		s.send(client, v1(client, uint32(i)), callOf(uint32(i), nfs, 3, c.procedure))
		s.send(server, reply1(server, uint32(i), 64), replyOf(uint32(i), c.results...))
		if got := said(s.last.Results()); got != c.want {
			t.Errorf("procedure %d: %s, want %s", c.procedure, got, c.want)
		}
	}
}

// FuzzDetails checks that whatever stands for the arguments or the results of a procedure is read to an end.
func FuzzDetails(f *testing.F) {
	f.Add(uint32(3), []byte{0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 0, 1, 65, 0, 0, 0})
	f.Add(uint32(17), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, procedure uint32, b []byte) {
		s := newScript(t)
		s.connect(private, private)
		raw := func(e *xdr.Encoder) { e.Fixed(b) }
		s.send(client, v1(client, 1), callOf(1, nfs, 3, procedure%24, raw))
		said(s.last.Arguments())
		said(s.last.Credential())
		s.send(server, reply1(server, 1, 64), replyOf(1, raw))
		if d := s.last.Results(); d != nil && len(d.Fields) == 0 && !d.Cut {
			t.Error("results without anything in them")
		}
	})
}
