package wireshark_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// join puts frames into one datagram. The recorder adds the first prefix.
func join(frames ...[]byte) (all []byte) {
	for i, f := range frames {
		if i > 0 {
			all = append(all, 0, 0)
		}
		all = append(all, f...)
	}
	return all
}

// between gives a frame other endpoints.
func between(src, dst uint16, b []byte) []byte {
	binary.LittleEndian.PutUint16(b, dst)
	binary.LittleEndian.PutUint16(b[2:], src)
	return b
}

// lone acknowledges ids from 5 on.
func lone(seq int) []byte { return made(from2(seq, 5, 3)) }

// shownByCaptured returns the ids of the frames in each packet, as package
// captured finds them.
func shownByCaptured(t *testing.T, file string, o captured.Options) map[int][]string {
	t.Helper()
	all := make(map[int][]string)
	for p, err := range captured.ReadFile(file, o) {
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := p.Header(); ok {
			all[p.Record] = append(all[p.Record], strconv.Itoa(int(h.Seq)))
		}
	}
	return all
}

// Captures of hosts with segmentation offload have many frames in one packet.
func TestFramesInOneDatagram(t *testing.T) {
	requireTshark(t)
	full := func(seq, index int) []byte { return made(from1(seq), data(1, index, 9, 100)) }
	padded := func(seq, index int) []byte { return append(made(from1(seq), data(1, index, 9, 99)), "abcde"...) }
	broken := full(3, 3)
	broken[frame.HeaderSize+20]++
	spoilt := introduction(t, 3, "memory")
	bare := spoilt[:frame.HeaderSize+frame.MessageHeaderSize]
	spoilt[len(bare)+3] = 1
	cases := []struct {
		name string
		data []byte
		want string // ids
		rest int    // bytes of padding
	}{
		{"one", full(1, 1), "1", 0},
		{"equal", join(full(1, 1), full(2, 2), full(3, 3)), "1,2,3", 0},
		{"last is shorter", join(full(1, 1), full(2, 2), made(from1(3), data(1, 3, 9, 8))), "1,2,3", 0},
		{"last has no messages", join(full(1, 1), made(frame.Header{Dst: 2, Src: 1, Seq: 2, AckStart: 9, AckCount: 1})), "1,2", 0},
		{"padded by OpenCPI", join(padded(1, 1), padded(2, 2), padded(3, 3)), "1,2,3", 15},
		{"acknowledgements", join(made(from2(4, 1, 1)), made(from2(5, 3, 2))), "4,5", 0},
		{"last is longer", join(made(from1(1), data(1, 1, 9, 8)), full(2, 2)), "1", 136},
		{"several sources", join(full(1, 1), between(3, 2, full(1, 2)), between(4, 2, full(3, 3)), between(3, 2, lone(2))), "1,1,3,2", 0},
		{"several destinations", join(full(1, 1), full(2, 2), between(1, 7, full(1, 3)), between(1, 3, made(from1(3), data(1, 3, 9, 8)))), "1,2,1,3", 0},
		{"several to acknowledge", join(lone(7), between(2, 9, lone(3)), lone(9)), "7,3,9", 0},
		{"both ends vary", join(full(1, 1), between(3, 2, full(2, 2)), between(1, 3, full(3, 3))), "1", 272},
		{"ends turn round", join(full(1, 1), between(2, 1, full(2, 2))), "1", 136},
		{"several, padded", join(padded(1, 1), between(1, 7, padded(2, 2))), "1", 5 + 140},
		{"several, last padded", join(full(1, 1), between(1, 7, append(made(from1(3), data(1, 3, 9, 99)), 0))), "1", 136},
		{"several, third broken", join(full(1, 1), between(1, 7, full(2, 2)), broken), "1", 272},
		{"several, third of nobody", join(full(1, 1), full(2, 2), between(0, 2, full(3, 3))), "1", 272},
		{"introduction", introduction(t, 1, "memory", "link"), "1", 0},
		{"introduction behind", join(full(1, 1), full(2, 2), introduction(t, 3, "memory")), "1,2,3", 0},
		{"introductions", join(introduction(t, 1), introduction(t, 2, "memory"), introduction(t, 3, "link")), "1,2,3", 0},
		{"bare behind introductions", join(introduction(t, 1), introduction(t, 2), bare), "1,2,3", 0},
		{"bare introductions", join(bare, bare), "3,3", 0},
		{"introductions, padded", join(append(introduction(t, 1, "memory"), 0, 0, 0, 0), append(introduction(t, 2), 9, 9, 9, 9)), "1,2", 8},
		{"several introduced", join(introduction(t, 1), between(1, 7, introduction(t, 2, "link")), between(1, 3, lone(3))), "1,2,3", 0},
		{"several, introduction behind", join(full(1, 1), between(4, 2, introduction(t, 2, "link"))), "1,2", 0},
		{"several, damaged behind", join(introduction(t, 1), between(1, 7, spoilt)), "1", 136},
		{"damaged services", spoilt, "3", frame.ServicesSize},
		{"damaged services, and more", join(spoilt, introduction(t, 4)), "3", frame.ServicesSize + 136},
		{"garbage behind", append(full(1, 1), make([]byte, 50)...), "1", 50},
		{"garbage as long", append(full(1, 1), make([]byte, 136)...), "1", 136},
		{"many", join(slices.Repeat([][]byte{full(5, 5)}, 60)...), strings.TrimSuffix(strings.Repeat("5,", 60), ","), 0},
	}
	r := newRecorder(t, "IPv4", tap.Options{})
	for _, tt := range cases {
		r.send(0, tt.data)
	}
	file := r.save()
	shown := shownByCaptured(t, file, captured.Options{Ports: []uint16{40000}})
	got := rows(t, file, []string{"dgrdma.seq", "dgrdma.padding", "_ws.col.Info"}, "-o", "dgrdma.ports:40000")
	for i, tt := range cases {
		p := got[i+1]
		if ids := strings.Join(shown[i+1], ","); ids != tt.want {
			t.Errorf("%s: package captured finds ids %s, want %s", tt.name, ids, tt.want)
		}
		rest := len(strings.ReplaceAll(p["dgrdma.padding"], ",", "")) / 2
		if p["dgrdma.seq"] != tt.want || rest != tt.rest {
			t.Errorf("%s: ids %s and %d bytes of padding, want %s and %d", tt.name, p["dgrdma.seq"], rest, tt.want, tt.rest)
		}
		info, count, span := p["_ws.col.Info"], "", ""
		if n := len(shown[i+1]); n > 1 {
			count, span = fmt.Sprintf("%d frames", n), fmt.Sprintf(", ids %s..%s: ", shown[i+1][0], shown[i+1][n-1])
			if strings.HasPrefix(tt.name, "several") {
				span = ", several endpoints: "
			}
		}
		if !strings.HasPrefix(info, count) || !strings.Contains(info, span) || strings.Contains(info, " frames") != (count != "") {
			t.Errorf("%s: info is %q", tt.name, info)
		}
	}
}

// Wherever a snap length cuts what several ids sent, the same frames are shown
// as by package captured.
func TestJoinedAndCut(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	small := func(seq, n int) []byte { return made(from1(seq), data(1, 1, 9, n), data(1, 2, 9, n)) }
	var all []record
	var names []string // of what they are cut from
	for name, whole := range map[string][]byte{
		"sources":      join(small(1, 13), between(3, 2, small(1, 13)), between(4, 2, small(3, 13)), between(3, 2, small(2, 8))),
		"destinations": join(small(1, 16), between(1, 3, small(2, 16)), between(1, 9, lone(1))),
		"acknowledged": join(lone(7), between(2, 9, lone(8)), lone(9), between(2, 3, made(from2(4, 1, 1)))),
		"both vary":    join(small(1, 16), between(2, 3, small(2, 16)), between(4, 3, small(2, 16))),
		"introduced":   join(introduction(t, 1, "memory"), introduction(t, 2), introduction(t, 3, "link")),
		"one of them":  join(small(1, 40), small(2, 40), introduction(t, 3, "memory")),
		"several":      join(introduction(t, 1, "memory"), between(1, 3, introduction(t, 2)), between(1, 9, lone(1))),
		"padded":       join(append(small(1, 16), 0), between(1, 3, append(small(2, 16), 0)), between(1, 9, lone(1))),
	} {
		r := newRecorder(t, "IPv4", tap.Options{})
		r.send(0, whole)
		one := records(t, r.file.Bytes())[0]
		for n := headersOf["IPv4"] + frame.HeaderSize; n <= len(one.data); n++ {
			all = append(all, record{one.data[:n], one.length})
			names = append(names, name)
		}
	}
	file := save(t, pcapOf(1, all)) // one, as tshark takes long to start
	for _, ports := range [][]uint16{nil, {40000}} {
		want := shownByCaptured(t, file, captured.Options{Ports: ports})
		var args []string
		if ports != nil {
			args = []string{"-o", "dgrdma.ports:40000"}
		}
		got := rows(t, file, []string{"dgrdma.seq"}, args...)
		for i, c := range all {
			if ids := got[i+1].list("dgrdma.seq"); !slices.Equal(ids, want[i+1]) {
				t.Errorf("%s, ports %v, %d of %d bytes: ids %v, package captured finds %v", names[i], ports, len(c.data), c.length, ids, want[i+1])
			}
		}
	}
}
