package dgrdma

import (
	"errors"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// TestPostSaysWhatIsOutside checks that the error for what lies outside the peer's memory, or is
// not aligned, names the segment or the completion word, where it is, and where the memory ends.
func TestPostSaysWhatIsOutside(t *testing.T) {
	two := func(addr uint32, n int) *Transaction {
		return &Transaction{Segments: []Segment{{0, pattern(1, 8)}, {addr, pattern(1, n)}}, Completion: Word(0, 1)}
	}
	for _, c := range []struct {
		profile Profile
		t       *Transaction
		is      error
		says    string
	}{
		{Native(), two(4090, 8), ErrBounds,
			"dgrdma: address outside the memory: segment 1 of a post to peer 1: 8 bytes at 0xffa end at 0x1002, the memory at 0x1000"},
		{Native(), two(0xFFFFFFFC, 8), ErrBounds,
			"dgrdma: address outside the memory: segment 1 of a post to peer 1: 8 bytes at 0xfffffffc end at 0x100000004, the memory at 0x1000"},
		{Native(), write(0, nil, 4094, 1), ErrBounds,
			"dgrdma: address outside the memory: completion word of a post to peer 1: 4 bytes at 0xffe end at 0x1002, the memory at 0x1000"},
		{Native(), write(0, nil, 0xFFFFFFFD, 1), ErrBounds,
			"dgrdma: address outside the memory: completion word of a post to peer 1: 4 bytes at 0xfffffffd end at 0x100000001, the memory at 0x1000"},
		{FPGA(), two(4096-16, 17), ErrBounds,
			"dgrdma: address outside the memory: segment 1 of a post to peer 1: 17 bytes, padded to 20, at 0xff0 end at 0x1004, the memory at 0x1000"},
		{FPGA(), two(20, 8), ErrAlignment,
			"dgrdma: address not aligned as the peer needs: segment 1 of a post to peer 1: address 0x14 is no multiple of 16"},
	} {
		withFakePeer(t, Config{}, c.profile, func(t *testing.T, _ *Endpoint, conn *Conn, _ *fakePeer) {
			if err := conn.Post(c.t); !errors.Is(err, c.is) || err.Error() != c.says {
				t.Errorf("%s:\ngot  %v\nwant %s", c.profile.Name, err, c.says)
			}
		})
	}
}

// TestRegionSaysWhatIsOutside checks that the error with which a region refuses a message or a wait
// names them as well.
func TestRegionSaysWhatIsOutside(t *testing.T) {
	r, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	_, data := r.Admit(2, &frame.Message{Addr: 4000, Len: 100, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion})
	_, word := r.Admit(2, &frame.Message{CompletionAddr: 8192})
	_, none := new(Region).Admit(2, &frame.Message{CompletionAddr: 8192})
	if word, err := r.Wait(t.Context(), 4093, func(uint32) bool { return true }); word != 0 || !errors.Is(err, ErrBounds) {
		t.Errorf("a word that ends behind the memory: %d, %v", word, err)
	}
	if err := r.WaitFor(t.Context(), 4092, 0); err != nil {
		t.Errorf("the last word: %v", err)
	}
	waited := r.WaitFor(t.Context(), 4094, 1)
	for _, c := range []struct {
		err  error
		says string
	}{
		{data, "dgrdma: address outside the memory: data: 100 bytes at 0xfa0 end at 0x1004, the memory at 0x1000"},
		{word, "dgrdma: address outside the memory: completion word: 4 bytes at 0x2000 end at 0x2004, the memory at 0x1000"},
		{none, "dgrdma: address outside the memory: completion word: 4 bytes at 0x2000, and there is no memory"},
		{waited, "dgrdma: address outside the memory: the word to wait for: 4 bytes at 0xffe end at 0x1002, the memory at 0x1000"},
	} {
		if !errors.Is(c.err, ErrBounds) || c.err.Error() != c.says {
			t.Errorf("got  %v\nwant %s", c.err, c.says)
		}
	}
}

// TestNewRegionSaysWhichSizes checks that the error for a size that no region can have names those
// that it can.
func TestNewRegionSaysWhichSizes(t *testing.T) {
	if r, err := NewRegion(-1); r != nil || err == nil || err.Error() != "dgrdma: a region has 0 to 4294967296 bytes, not -1" {
		t.Errorf("%v, %v", r, err)
	}
}

// TestPostUpToTheEnd checks that the peer's memory, or all addresses if its size is not known, may
// be written up to the end; that all of a service's may, whatever the memory has; and that no bytes
// may be anywhere.
func TestPostUpToTheEnd(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	for _, c := range []struct {
		size   uint64
		memory bool
		end    uint64
	}{{1, true, 1}, {4096, true, 4096}, {0, true, 1 << 32}, {0, false, 1 << 32}, {4096, false, 1 << 32}} {
		r.c.size.Store(c.size)
		behind := &Transaction{Segments: []Segment{{uint32(c.end), []byte{1}}}}
		if err := r.c.validate(behind, c.memory); c.end < 1<<32 && !errors.Is(err, ErrBounds) {
			t.Errorf("a memory of %d bytes, one byte behind it: %v", c.size, err)
		}
		for _, n := range []uint64{1, 4, 8} {
			for over := range n {
				at := c.end - n + over
				if n > c.end {
					continue
				}
				all := []*Transaction{{Segments: []Segment{{uint32(at), make([]byte, n)}, {Addr: 0xFFFFFFFF}}}}
				if n == 4 {
					all = append(all, write(0, nil, uint32(at), 1))
				}
				for _, x := range all {
					if err := r.c.validate(x, c.memory); errors.Is(err, ErrBounds) != (over > 0) {
						t.Errorf("a memory of %d bytes (%v), %d bytes up to %d behind its end: %v", c.size, c.memory, n, over, err)
					}
				}
			}
		}
	}
}

// TestCompletionOfAllOnes checks that a word whose value is all ones completes for no peer that
// takes either half for no completion (quirk D2-7), and for others it does.
func TestCompletionOfAllOnes(t *testing.T) {
	for _, c := range []struct {
		profile Profile
		value   uint32
		want    error
	}{
		{OpenCPI2(), frame.NoCompletion, ErrNoCompletion}, {OpenCPI2(), frame.NoCompletion / 2, nil}, {OpenCPI2(), 1, nil},
		{OpenCPI(false), frame.NoCompletion, nil}, {Native(), frame.NoCompletion, nil},
	} {
		r := newHalfRig(t, 1, c.profile, Config{})
		if err := r.c.validate(write(0, nil, 0, c.value), true); !errors.Is(err, c.want) {
			t.Errorf("%s, value %#x: %v, want %v", c.profile.Name, c.value, err, c.want)
		}
	}
}
