package wireshark_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/inspect/wireshark"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// TestPlausible checks that over UDP what looks like a frame is one, by the rules of package captured.
func TestPlausible(t *testing.T) {
	requireTshark(t)
	good := func() []byte { return made(from1(9), data(7, 1, 2, 5), data(7, 2, 2, 3)) }
	patch := func(b []byte, at int, v byte) []byte {
		b[at] = v
		return b
	}
	lone := func(tail ...byte) []byte { return append(made(from2(5, 9, 1)), tail...) }
	cases := []struct {
		name   string
		prefix byte // the first byte before the frame; the second is 0
		data   []byte
		want   bool
	}{
		{"messages", 0, good(), true},
		{"destination before", 2, good(), true},
		{"another before", 3, good(), false},
		{"trailing", 0, append(good(), 1, 2, 3), true},
		{"acknowledgement", 0, lone(), true},
		{"no destination", 0, patch(good(), 0, 0), false},
		{"no source", 0, patch(good(), 2, 0), false},
		{"flags", 0, patch(good(), 9, 5), false},
		{"checksum", 0, frame.AddChecksum(good()), true},
		{"acknowledgement and checksum", 0, frame.AddChecksum(append(make([]byte, 0, 46), lone()...)), false},
		{"nothing", 0, patch(lone(), 8, 0), false},
		{"long acknowledgement", 0, lone(0), false},
		{"type", 0, patch(good(), 10+22, 4), false},
		{"index", 0, patch(good(), 42+14, 3), false},
		{"length", 0, patch(good(), 42+20, 4), false},
		{"short", 0, good()[:9], false},
		{"empty", 0, nil, false},
	}
	r := newRecorder(t, "IPv4", tap.Options{})
	for _, tt := range cases {
		r.send(0, tt.data)
		b := r.file.Bytes()
		b[len(b)-len(tt.data)-2] = tt.prefix
	}
	got := rows(t, r.save(), []string{"dgrdma.seq"})
	for i, tt := range cases {
		if _, shown := got[i+1]; shown != tt.want {
			t.Errorf("%s: taken for a frame: %v, want %v", tt.name, shown, tt.want)
		}
	}
}

func TestPreferences(t *testing.T) {
	requireTshark(t)
	t.Parallel()
	ether := newRecorder(t, "Ethernet", tap.Options{EtherType: 0xf055})
	ether.send(0, made(from1(9), data(1, 1, 1, 8)))
	usual := newRecorder(t, "Ethernet", tap.Options{})
	usual.send(0, made(from1(9), data(1, 1, 1, 8)))
	// Nobody would take this for a frame: its flags are reserved.
	odd := newRecorder(t, "IPv6", tap.Options{})
	h := from1(9)
	h.Flags = 0xf0
	odd.send(0, made(h, data(1, 1, 1, 8)))
	var all []record
	for _, r := range []*recorder{ether, usual, odd} {
		all = append(all, records(t, r.file.Bytes())...)
	}
	file := save(t, pcapOf(1, all))
	for _, tt := range []struct {
		name, option      string
		ether, usual, odd bool // which are shown
	}{
		{"type and port by default", "", false, true, false},
		{"type in hexadecimal", "-odgrdma.ethertype:0xf055", true, false, false},
		{"type in decimal", "-odgrdma.ethertype:" + strconv.Itoa(0xf055), true, false, false},
		{"nonsense for a type", "-odgrdma.ethertype:type", false, true, false},
		{"length for a type", "-odgrdma.ethertype:1500", false, true, false},
		{"port of the destination", "-odgrdma.ports:1-7,40000", false, true, true},
		{"port of the source", "-odgrdma.ports:18077", false, true, true},
		{"another port", "-odgrdma.ports:18078", false, true, false},
		{"decode as", "-dudp.port==40000,dgrdma_in_udp", false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var args []string
			if tt.option != "" {
				args = append(args, tt.option)
			}
			got := rows(t, file, []string{"dgrdma.seq"}, args...)
			for i, want := range []bool{tt.ether, tt.usual, tt.odd} {
				if shown := got[i+1]["dgrdma.seq"] == "9"; shown != want {
					t.Errorf("packet %d is shown: %v, want %v", i+1, shown, want)
				}
			}
		})
	}
}

// What is compiled in works from the folder for personal plugins, also if it is
// root who runs tshark.
func TestPersonalPlugin(t *testing.T) {
	requireTshark(t)
	home := t.TempDir()
	dir := filepath.Join(home, ".local", "lib", "wireshark", "plugins")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dgrdma.lua"), []byte(wireshark.Script), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, "Ethernet", tap.Options{})
	r.send(0, made(frame.Header{Dst: 0x21, Src: 0x43, Seq: 1, AckStart: 1, AckCount: 2}))
	out := runTshark(t, home, r.save(), "-T", "fields", "-e", "dgrdma.dst", "-e", "dgrdma.src")
	if out != "33\t67\n" {
		t.Errorf("tshark prints %q", out)
	}
}
