package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestServerOfAnotherProtocol checks that the first calls of a client end at once, and say why, where the server closes connections without
// a reply or sends text, TLS or a reply of iWARP; and that a client which has had a reply connects again instead.
func TestServerOfAnotherProtocol(t *testing.T) {
	for name, sends := range map[string]string{
		"nothing": "", "HTTP": "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH": "SSH-2.0-OpenSSH_9.2\r\n", "TLS": "\x15\x03\x01\x00\x02\x02\x46 and more of it",
		"iWARP": "MPA ID Rep Frame\x40\x02\x00\x00",
	} {
		for _, replied := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c, peers, _ := dialRaw(t, ClientOptions{GiveUp: time.Hour})
				defer c.Close()
				b := c.Bind(testProgram, None)
				call := func() chan error {
					return begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
				}
				answer := func(p *rawPeer, ended chan error) {
					xid, _, _ := p.nextCall()
					p.send(replyTo(xid, nil))
					if err := <-ended; err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				p := <-peers
				if replied {
					answer(p, call())
				}
				began := time.Now()
				ended := call()
				for i := range 2 {
					p.nextCall()
					p.nc.Write([]byte(sends))
					p.nc.Close()
					if !replied && (sends != "" || i == 1) {
						break
					}
					p = <-peers
				}
				if replied {
					answer(p, ended)
					return
				}
				if err := <-ended; !errors.Is(err, ErrNotRPC) || time.Since(began) > time.Second {
					t.Errorf("%s: %v after %v", name, err, time.Since(began))
				}
			})
		}
	}
}
