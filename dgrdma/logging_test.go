package dgrdma

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// lines counts what is logged, by message.
type lines struct {
	mu   sync.Mutex
	n    map[string]int
	last slog.Record
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n[r.Message]++
	if r.Message == "too many events to log" {
		l.last = r
	}
	return nil
}

// discarding discards every message.
type discarding struct{}

func (discarding) Admit(frame.EndpointID, *frame.Message) ([]byte, error) {
	return nil, errSwallowed
}
func (discarding) Complete(frame.EndpointID, *frame.Message) {}

var errSwallowed = Swallow(errPicky)

// TestLogIsNotFlooded checks that the log gets as many events as a person reads, and how many there
// were more, though each 24 bytes of a peer may be an event; and that the application gets all.
func TestLogIsNotFlooded(t *testing.T) {
	log, told := &lines{n: make(map[string]int)}, 0
	cfg := Config{Memory: discarding{}, Logger: slog.New(log), OnEvent: func(e Event) {
		if e.Kind == TransactionLost {
			told++
		}
	}}
	withFakePeer(t, cfg, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		const frames, each = 50, 50
		txn := uint32(life)
		flood := func(id frame.Seq) {
			for i := range frame.Seq(frames) {
				var list []msg
				for range each {
					list = append(list, data(txn, 1, 1, 64, nil))
					txn++
				}
				s.send(id+i, list...)
			}
			s.recv(100 * time.Millisecond)
		}
		flood(2)
		if got := log.n[TransactionLost.String()]; got > loggedEach || got < loggedEach-10 {
			t.Errorf("%d lines, want nearly %d", got, loggedEach)
		}
		time.Sleep(time.Second)
		s.send(60, data(txn, 1, 1, 64, nil))
		txn++
		s.recv(time.Millisecond)
		left := uint64(0)
		log.last.Attrs(func(a slog.Attr) bool {
			if a.Key == "left_out" {
				left = a.Value.Uint64()
			}
			return true
		})
		if got := log.n[TransactionLost.String()]; got+int(left) != frames*each+1 || told != frames*each+1 {
			t.Errorf("%d lines and %d left out, %d told, want %d", got, left, told, frames*each+1)
		}
	})
}

// TestLogHasNoEmptyFields checks that a line of the log has those fields of an event that say
// something.
func TestLogHasNoEmptyFields(t *testing.T) {
	var log bytes.Buffer
	level := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}
	withFakePeer(t, Config{Logger: slog.New(slog.NewTextHandler(&log, level))}, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		s.send(2, data(life, 1, 1, 8192, pattern(1, 8)))
		s.recv(time.Millisecond)
		c.Close()
	})
	const peer = " endpoint=2 peer=1 addr=02:00:00:00:00:01"
	want := `msg="peer up"` + peer + "\n" +
		`msg="frame refused"` + peer + ` reason=bounds txn=` + fmt.Sprint(life) +
		` err="dgrdma: address outside the memory: data: 8 bytes at 0x2000 end at 0x2008, the memory at 0x1000"` + "\n"
	if log.String() != want {
		t.Errorf("got\n%swant\n%s", &log, want)
	}
}

// TestLogCountsWhatItShows checks that events below the log's level do not count as a flood.
func TestLogCountsWhatItShows(t *testing.T) {
	var log bytes.Buffer
	f := newFeed(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 * loggedEach {
		f.e.event(Event{Kind: FrameRefused})
	}
	f.e.event(Event{Kind: PeerUp})
	if got := log.String(); bytes.Count(log.Bytes(), []byte("\n")) != 1 || !bytes.Contains(log.Bytes(), []byte("peer up")) {
		t.Errorf("logged %q", got)
	}
}
