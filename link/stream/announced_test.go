package stream

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestSourceThatWasCut checks that, of a source that ends before what was announced of it, nothing is
// left at the receiver, and that both sides are told how much there was.
func TestSourceThatWasCut(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, has := range []int{0, 3, bufferSize, 2 * bufferSize} {
		dir, file := fileIn(t)
		const announced = 2*bufferSize + 1
		out, in := pair(t, announced, nil, nil)
		sent, received := both(
			func() error { return out.Send(t.Context(), bytes.NewReader(make([]byte, has))) },
			func() error { return in.Receive(t.Context(), file) })
		says := "the input became shorter while it was sent: " + tallyText(tallyOf(uint64(has)))
		says = strings.TrimSuffix(says, " bytes") + " of 524289 bytes"
		var local *LocalError
		if !errors.Is(sent, ErrChanged) || !errors.As(sent, &local) || sent.Error() != says {
			t.Errorf("the sender: %v, want %s", sent, says)
		}
		var aborted *link.AbortError
		if !errors.As(received, &aborted) || aborted.Reason != says {
			t.Errorf("the receiver: %v, want %s", received, says)
		}
		fixture.WantFiles(t, dir, nil)
	}
}

// TestSourceThatGrew checks that no more than was announced is sent of a source that has more, though
// it never ends.
func TestSourceThatGrew(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	for _, announced := range []int{0, 3, bufferSize, bufferSize + 1} {
		dir, file := fileIn(t)
		out, in := pair(t, int64(announced), nil, nil)
		sent, received := both(
			func() error { return out.Send(t.Context(), growing{}) },
			func() error { return in.Receive(t.Context(), file) })
		if sent != nil || received != nil {
			t.Errorf("%v, %v", sent, received)
		}
		fixture.WantFiles(t, dir, map[string][]byte{"f": make([]byte, announced)})
	}
}

// TestAnnouncedIsOfOneWay checks that as much comes back as there is, whatever was announced of what
// is sent.
func TestAnnouncedIsOfOneWay(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	duplex := &Options{Duplex: true}
	for _, back := range []string{"", "more than that"} {
		out, in := pair(t, 5, duplex, duplex)
		var there, here bytes.Buffer
		sent, received := both(
			func() error { return out.Exchange(t.Context(), strings.NewReader("there"), Writer(&here)) },
			func() error { return in.Exchange(t.Context(), strings.NewReader(back), Writer(&there)) })
		if sent != nil || received != nil || there.String() != "there" || here.String() != back {
			t.Errorf("%v, %v; %q there, %q here", sent, received, &there, &here)
		}
	}
}

// growing is a file that grows faster than it is read.
type growing struct{}

func (growing) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
