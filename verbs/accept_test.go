package verbs

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// full is a listener that has no descriptor for who comes.
type full struct {
	net.Listener
	asked atomic.Int32
}

func (f *full) Accept() (net.Conn, error) {
	f.asked.Add(1)
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}

// TestNoDescriptors: a listener that can accept nobody tries again after a while, not at once, and shows
// out who has been in the lobby for longest.
func TestNoDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &full{}
		l := &Listener{nl: f, lobby: newLobby(new(bounds))}
		l.ctx, l.stop = context.WithCancel(t.Context())
		g := l.lobby.enter(l.ctx)
		l.all.Add(1)
		go l.accept()
		time.Sleep(10 * time.Second)
		if n := f.asked.Load(); n < 10 || n > 20 {
			t.Errorf("it asked %d times within ten seconds", n)
		}
		if g.ctx.Err() == nil {
			t.Error("nobody was shown out")
		}
		l.stop()
		l.all.Wait()
	})
}
