package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// calling is a context that calls a function when it is asked whether it is done.
type calling struct {
	context.Context
	do func()
}

func (m *calling) Err() error {
	m.do()
	return m.Context.Err()
}

// TestManualAcceptComesTooLate checks that an Accept in a host without goroutines, which finds that
// another one took the link that it saw, goes on polling the host: the next Dial is accepted.
func TestManualAcceptComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a := n.host(1, nil)
		b := n.host(2, &Config{Endpoint: dgrdma.Config{Manual: true}})
		p, err := b.Listen("frames", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		refused := 0
		late := &calling{ctx, func() {
			if refused++; refused == 1 {
				p.Refuse("not now")
				p.Refuse("")
				<-p.pending.more // another Accept was as late, and is given up
			}
		}}
		accepted := make(chan error, 1)
		go func() {
			_, err := p.Accept(late)
			accepted <- err
		}()
		if _, err := dial(ctx, a, 2, "frames", nil); !errors.Is(err, ErrRefused) {
			t.Errorf("refused: %v", err)
		}
		if _, err := dial(ctx, a, 2, "frames", nil); err != nil {
			t.Errorf("dialed again: %v", err)
		}
		if err := <-accepted; err != nil {
			t.Error(err)
		}
	})
}
