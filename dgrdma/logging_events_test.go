package dgrdma

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestLoggedEachSecond checks that as many of the events that do not end are logged in each second
// as the configuration says, and that each line says how many were left out before it.
func TestLoggedEachSecond(t *testing.T) {
	const each, seconds = time.Millisecond, 5
	var q quiet
	logged, told, pending := 0, uint64(0), uint64(0)
	begin := ack.Instant(time.Hour)
	for i := range seconds * int(time.Second/each) {
		skipped, ok := q.ask(begin.Add(time.Duration(i) * each))
		if !ok {
			pending++
			continue
		}
		logged++
		if told += skipped; skipped != pending {
			t.Errorf("event %d: %d are said to be left out, %d were", i, skipped, pending)
		}
		pending = 0
	}
	if logged != seconds*100 {
		t.Errorf("%d lines in %d s, want 100 in each", logged, seconds)
	}
	// One event that is left out is told, too.
	now := begin.Add(time.Hour)
	for range 101 {
		q.ask(now)
	}
	if skipped, ok := q.ask(now.Add(time.Second)); !ok || skipped != 1 {
		t.Errorf("%d are said to be left out, want 1; logged: %v", skipped, ok)
	}
}

// TestLogTellsOfOneLeftOut checks that the log tells of one event that was left out.
func TestLogTellsOfOneLeftOut(t *testing.T) {
	var log bytes.Buffer
	f := newFeed(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	f.e.quiet.skipped = 1
	f.e.event(Event{Kind: PeerUp})
	if !strings.Contains(log.String(), "left_out=1") {
		t.Errorf("logged %q", &log)
	}
	log.Reset()
	f.e.event(Event{Kind: PeerUp})
	if strings.Contains(log.String(), "left_out") {
		t.Errorf("nothing was left out; logged %q", &log)
	}
}

// TestLogLevels checks that what an unknown source causes with each frame is logged at the debug
// level, and the rest above it; each with those fields that say something.
func TestLogLevels(t *testing.T) {
	var log bytes.Buffer
	options := &slog.HandlerOptions{Level: slog.Level(-100), ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	f := newFeed(t, Config{Logger: slog.New(slog.NewTextHandler(&log, options))})
	for _, c := range []struct {
		ev   Event
		want string
	}{
		{Event{Kind: PeerUp}, `level=INFO msg="peer up"`},
		{Event{Kind: PeerRestarted, Reason: RefusedMalformed}, `level=WARN msg="peer restarted" reason=malformed`},
		{Event{Kind: PeerDown, Err: errors.New("gone")}, `level=WARN msg="peer down" err=gone`},
		{Event{Kind: PeerDown, Err: &PeerError{ID: 1, Addr: addrA, Err: ErrPeerClosed}}, `level=INFO msg="peer closed"`},
		{Event{Kind: FrameRefused}, `level=DEBUG msg="frame refused"`},
		{Event{Kind: FrameRefused, Txn: 1}, `level=DEBUG msg="frame refused" txn=1`},
		{Event{Kind: TransactionLost}, `level=WARN msg="transaction lost" txn=0`},
		{Event{Kind: FramesMissed, Frames: 1}, `level=WARN msg="frames missed" frames=1`},
	} {
		c.ev.Peer = PeerName{1, addrA}
		log.Reset()
		f.e.event(c.ev)
		got := strings.Replace(log.String(), fmt.Sprintf(" endpoint=2 peer=1 addr=%v", addrA), "", 1)
		if got != c.want+"\n" {
			t.Errorf("got  %swant %s", got, c.want)
		}
	}
}

// TestEventInWords checks that an event that is printed as it is says what happened, to which peer, and what more is known of it.
func TestEventInWords(t *testing.T) {
	peer := PeerName{1, addrA}
	for _, x := range []struct {
		ev   Event
		want string
	}{
		{Event{Kind: PeerUp, Peer: peer}, "peer up: peer 1 at ADDR"},
		{Event{Kind: FrameRefused, Peer: peer, Reason: RefusedMalformed, Txn: 7}, "frame refused: peer 1 at ADDR, reason=malformed, txn=7"},
		{Event{Kind: PeerDown, Peer: peer, Err: errors.New("gone")}, "peer down: peer 1 at ADDR, err=gone"},
	} {
		if got, want := fmt.Sprint(x.ev), strings.Replace(x.want, "ADDR", addrA.String(), 1); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestServicesHearOfPeersOnly checks that handlers are told what becomes of their peer's lives, and
// nothing else.
func TestServicesHearOfPeersOnly(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	s := newShelf("post", 1<<16)
	serve(t, f.e, s)
	lives := []EventKind{PeerUp, PeerRestarted, PeerDown}
	for kind := range EventKind(len(eventNames)) {
		f.e.event(Event{Kind: kind})
		f.e.event(Event{Kind: kind, Conn: c})
	}
	if s.channel(0); !slices.Equal(s.events, lives) {
		t.Errorf("told of %v, want %v", s.events, lives)
	}
}

// TestFailureIsLogged checks that a wire that breaks is a line of the log, an error.
func TestFailureIsLogged(t *testing.T) {
	var log bytes.Buffer
	f := newFeed(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: new(OpenCPI(false))})
	if err != nil {
		t.Fatal(err)
	}
	f.breaks = errWire
	c.Post(write(0, nil, 0, 1))
	f.e.Progress(0)
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "endpoint=2") || !strings.Contains(got, errWire.Error()) {
		t.Errorf("logged %q", got)
	}
}
