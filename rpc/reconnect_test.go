package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestGiveUp checks that calls end after ClientOptions.GiveUp where the server is gone, where it is silent, and where connections begin
// and end again, and that the time counts from the last reply; a later call tries again.
func TestGiveUp(t *testing.T) {
	for _, how := range []string{"refuses", "silent", "ends"} {
		synctest.Test(t, func(t *testing.T) {
			const giveUp = 10 * time.Second
			c, peers, refuses := dialRaw(t, ClientOptions{GiveUp: giveUp, Timeout: giveUp})
			defer c.Close()
			b := c.Bind(testProgram, None)
			p := <-peers
			for range 3 { // replies come after outages that are shorter
				ended := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
				p.nextCall()
				time.Sleep(giveUp / 2)
				p.nc.Close()
				p = <-peers
				xid, _, _ := p.nextCall()
				time.Sleep(giveUp / 2)
				p.send(replyTo(xid, nil))
				if err := <-ended; err != nil {
					t.Fatalf("%s: %v", how, err)
				}
			}
			for range 2 {
				time.Sleep(time.Hour)
				if refuses.Store(how == "refuses"); how != "silent" {
					p.nc.Close()
					synctest.Wait()
				}
				began := time.Now()
				idempotent := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
				other := begin(func() error { return b.Call(context.Background(), procAdd, num(1), nil, nil) })
				if how == "ends" {
					go func() {
						for p := range peers {
							p.nc.Close()
						}
					}()
				} else if how == "silent" {
					p.nextCall()
					p.nextCall()
				}
				for _, ended := range []chan error{idempotent, other} {
					sent := ended == other && how != "refuses" // a call of ADD that was sent is not sent again
					if err := <-ended; !errors.Is(err, ErrNoReply) && !(sent && errors.Is(err, ErrLost)) {
						t.Errorf("%s: %v", how, err)
					}
				}
				if after := time.Since(began); after < giveUp || after > giveUp*3/2 {
					t.Errorf("%s: given up after %v", how, after)
				}
				refuses.Store(false)
				if how == "ends" {
					break
				}
				again := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
				p = <-peers
				xid, _, _ := p.nextCall()
				p.send(replyTo(xid, nil))
				if err := <-again; err != nil {
					t.Errorf("%s: afterwards: %v", how, err)
				}
			}
			c.Close()
			close(peers)
		})
	}
}

// TestGiveUpWhileConnected checks that calls end after ClientOptions.GiveUp also where the server takes each new connection and says
// nothing, with time limits for silent connections that are shorter.
func TestGiveUpWhileConnected(t *testing.T) {
	for _, part := range []time.Duration{1, 2, 3, 4} {
		synctest.Test(t, func(t *testing.T) {
			const giveUp = 12 * time.Second
			c, peers, _ := dialRaw(t, ClientOptions{GiveUp: giveUp, Timeout: giveUp * part / 6})
			defer c.Close()
			go func() {
				for p := range peers {
					go func() {
						for err := error(nil); err == nil; {
							_, err = p.receive()
						}
					}()
				}
			}()
			began := time.Now()
			err := c.Bind(testProgram, None).Call(context.Background(), 0, nil, nil, nil)
			if after := time.Since(began); !errors.Is(err, ErrNoReply) || after < giveUp || after > giveUp*5/4 {
				t.Errorf("Timeout %v: %v after %v", giveUp*part/6, err, after)
			}
			c.Close()
			close(peers)
		})
	}
}
