package captured

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// sealedKinds are what endpoints with a key send.
func sealedKinds(t testing.TB) map[string][]byte {
	r, asks := capturetest.Sealed(t, 1, 2), capturetest.Sealed(t, 1, 0)
	return map[string][]byte{
		"question": r.Question, "challenge": r.Challenge, "first": r.First, "second": r.Second, "unasked": r.Unasked,
		"frame": r.There(seal.Salt{9}, 1400), "shortest": r.There(seal.Salt{9}, 10), "back": r.Back(seal.Salt{9}, 100),
		"question for nobody": asks.Question, "its challenge": asks.Challenge, "its first": asks.First, "its second": asks.Second,
		"who is there": asks.There(seal.Salt{9}, 134), "its answer": asks.Back(seal.Salt{9}, 46),
	}
}

// prefixed puts in front what endpoints put there over UDP, with two zeros or with the destination.
func prefixed(b []byte, names bool) []byte {
	if names {
		return append(bytes.Clone(b[:2]), b...)
	}
	return append([]byte{0, 0}, b...)
}

// However it is wrapped, what is sealed is found, and a handshake too, and nothing that only resembles them.
func TestSealedIsFound(t *testing.T) {
	vm := startMachine(t)
	r := Options{}.recogniser()
	found := func(b []byte) bool {
		_, ok := r.Datagram(netip.AddrPort{}, netip.AddrPort{}, b, len(b))
		n, err := vm.Run(b)
		if err != nil || ok && n == 0 {
			t.Errorf("%x: the kernel drops it: %v", b, err)
		}
		return ok
	}
	for name, b := range sealedKinds(t) {
		for wrapping, c := range capturetest.Wrapped(t, b) {
			if b[0] == 1 || b[0] == 0 {
				continue // Wrapped has a prefix for 2
			}
			all, stats, err := readAll(capturetest.Ng(binary.LittleEndian, c), Options{})
			if err != nil || len(all) != 1 || stats != (capture.Stats{Records: 1, Packets: 1}) || !bytes.Equal(all[0].Data, b) || all[0].Seal() != seal.KindOf(b) {
				t.Fatalf("%s, %s: %+v, %+v, %v", name, wrapping, all, stats, err)
			}
		}
		if !found(prefixed(b, true)) || !found(prefixed(b, false)) {
			t.Errorf("%s is not found", name)
		}
		with := func(at int, v byte) []byte { return capturetest.PatchByte(prefixed(b, false), at, v) }
		for what, other := range map[string][]byte{
			"another prefix": with(0, 77),
			"reserved flag":  with(2+datagram.FlagsAt, b[datagram.FlagsAt]|0x20),
			"too short":      prefixed(b, false)[:2+45],
			"of nobody":      append(make([]byte, 6), b[4:]...),
		} {
			if found(other) {
				t.Errorf("%s: %s is taken", name, what)
			}
		}
		if seal.KindOf(b) == seal.Sealed {
			continue
		}
		if found(with(2+4, 1)) || found(append(prefixed(b, false), 0)) {
			t.Errorf("%s: one with a counter, or longer, is taken", name)
		}
	}
}

// Of the datagrams of other programs hardly any is taken: of those behind two zeros, one in 32 has flags as sealed frames have, and none of
// those without an id.
func TestSealedResemblesNothing(t *testing.T) {
	const seed, n = 3, 1 << 18
	random := rand.New(rand.NewPCG(seed, 0))
	r := Options{}.recogniser()
	taken, nobody := 0, 0
	for i := range n {
		b := make([]byte, 100)
		for j := range b {
			b[j] = byte(random.Uint32())
		}
		if i%2 == 0 {
			clear(b[:4]) // as of IKE over UDP
		}
		if _, ok := r.Datagram(netip.AddrPort{}, netip.AddrPort{}, b, len(b)); ok && i%2 == 0 {
			nobody++
		} else if ok {
			taken++
		}
	}
	if taken > 5 || nobody > 0 {
		t.Errorf("seed %d: of %d datagrams %d and %d are taken", seed, n, taken, nobody)
	}
}

// sealedRun is a run as segmentation offload joins it: all of a batch have the same salt.
func sealedRun(t testing.TB) [][]byte {
	r := capturetest.Sealed(t, 1, 2)
	var run [][]byte
	for range 20 {
		run = append(run, prefixed(r.There(seal.Salt{1, 2, 3, 4, 5, 6, 7}, 200), true))
	}
	return append(run, prefixed(r.There(seal.Salt{1, 2, 3, 4, 5, 6, 7}, 40), true))
}

// What a host joined is taken apart, also behind a snap length.
func TestSealedJoined(t *testing.T) {
	r, other, self := capturetest.Sealed(t, 1, 2), capturetest.Sealed(t, 1, 3), capturetest.Sealed(t, 1, 2)
	runs := map[string][][]byte{"a batch": sealedRun(t)}
	frame := func(r *capturetest.Talk, salt byte, n int) []byte {
		return prefixed(r.There(seal.Salt{salt, 1, 2, 3, 4, 5, 6}, n), true)
	}
	runs["batches of one"] = [][]byte{frame(r, 1, 90), frame(r, 2, 90), frame(r, 3, 90), frame(r, 4, 20)}
	lost := frame(r, 8, 90)
	frame(r, 8, 90) // never arrives
	runs["one is missing"] = [][]byte{lost, frame(r, 9, 90)}
	runs["another key"] = [][]byte{frame(r, 1, 90), frame(self, 2, 90)}
	runs["two ids"] = [][]byte{frame(r, 1, 90), frame(other, 1, 90), frame(r, 1, 90)}
	runs["a first message behind"] = [][]byte{frame(r, 1, 900), frame(r, 1, 900), prefixed(r.First, true)}
	runs["a first message behind one"] = [][]byte{frame(r, 1, 900), prefixed(r.First, true)}
	runs["a frame behind a first message"] = [][]byte{prefixed(r.First, true), frame(r, 1, 22)}
	runs["questions"] = [][]byte{prefixed(r.Question, true), prefixed(r.Question, true)}
	runs["largest"] = [][]byte{frame(r, 5, 32000), frame(r, 5, 32000)}
	for name, datagrams := range runs {
		for wire, c := range capturetest.Joined(t, datagrams...) {
			all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, c), Options{})
			if want := (capture.Stats{Records: 1, Packets: len(datagrams), Joined: 1}); err != nil || stats != want {
				t.Fatalf("%s, %s: %+v, %v; want %+v", name, wire, stats, err, want)
			}
			for i, p := range all {
				if whole := append(bytes.Clone(p.Prefix), p.Data...); !bytes.Equal(whole, datagrams[i]) || p.Seal() == datagram.Plain {
					t.Fatalf("%s, %s: datagram %d is % x", name, wire, i, whole)
				}
			}
		}
		whole := capturetest.Joined(t, datagrams...)["IPv4"]
		for n := 28 + len(datagrams[0]) + 30; n < len(whole.Data); n++ {
			cut := capturetest.Packet{Link: 101, Data: whole.Data[:n], Length: len(whole.Data)}
			all, _, err := readAll(capturetest.Pcap(binary.LittleEndian, false, cut), Options{})
			if err != nil || len(all) != (n-28+len(datagrams[0])-1)/len(datagrams[0]) {
				t.Fatalf("%s cut to %d: %d datagrams, %v", name, n, len(all), err)
			}
			if n > 5000 {
				break
			}
		}
	}
}

// What is one datagram stays one.
func TestSealedNotJoined(t *testing.T) {
	r, others := capturetest.Sealed(t, 1, 2), capturetest.Sealed(t, 4, 3)
	salt := seal.Salt{1, 2, 3, 4, 5, 6, 7}
	noise := bytes.Repeat([]byte{0x5A}, 400)
	for name, b := range map[string][]byte{
		"alone":           prefixed(r.There(salt, 60000), true),
		"noise behind":    append(prefixed(r.There(salt, 200), true), noise...),
		"between others":  append(prefixed(r.There(salt, 200), true), prefixed(others.There(salt, 200), true)...),
		"longer behind":   append(prefixed(r.There(salt, 200), true), prefixed(r.There(salt, 201), true)...),
		"salt in it":      append(append(prefixed(r.There(salt, 200), true), salt[:]...), noise...),
		"noise third":     append(append(prefixed(r.There(salt, 200), true), prefixed(r.There(salt, 200), true)...), noise[:231]...),
		"a question":      prefixed(r.Question, true),
		"question, noise": append(prefixed(r.Question, true), noise...),
	} {
		_, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, capturetest.Joined(t, b)["IPv4"]), Options{Ports: []uint16{40002}})
		if err != nil || stats != (capture.Stats{Records: 1, Packets: 1}) {
			t.Errorf("%s: %+v, %v", name, stats, err)
		}
	}
}

// To look for the next datagram of a run takes time in proportion to the length, also where every byte might be its beginning:
// in the square of that, this would take minutes.
func TestSealedSearchIsLinear(t *testing.T) {
	b := bytes.Repeat([]byte{1}, 64<<10)
	b[2+datagram.FlagsAt] = datagram.Flag
	for range 50 {
		j := joined{data: b, length: len(b)}
		if size := j.split(); size != len(b) {
			t.Fatalf("datagrams of %d bytes", size)
		}
	}
}
