package main

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/dgrdma/dgrdma/verbs"
)

// echoTCP sends back what comes on one stream, until it ends.
func echoTCP(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	for b := make([]byte, pingSize); ; {
		if _, err := io.ReadFull(c, b); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
}

func pingTCP(to, count string) error {
	n, err := pingsOf(count)
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	b := make([]byte, pingSize)
	return oneWay(n, func() error {
		_, err := c.Write(b)
		if err == nil {
			_, err = io.ReadFull(c, b)
		}
		return err
	})
}

// pinger is one end of pings by Sends.
type pinger struct {
	host  *verbs.Host
	pair  *verbs.QueuePair
	out   [pingSize]byte
	posts []verbs.Receive
	done  [1]verbs.Completion
}

// newPinger opens a host at an address, or anywhere.
func newPinger(at string) (*pinger, error) {
	h, err := verbs.Open("tcp" + at)
	if err != nil {
		return nil, err
	}
	// One for what is read, and one for what may come meanwhile.
	return &pinger{host: h, posts: []verbs.Receive{{ID: 0, Data: make([]byte, pingSize)}, {ID: 1, Data: make([]byte, pingSize)}}}, nil
}

func (p *pinger) options() *verbs.Options { return &verbs.Options{NoCRC: true, Posted: p.posts} }

func (p *pinger) send() error {
	return p.pair.Post(&verbs.Work{Op: verbs.OpSend, Silent: true, Data: p.out[:]})
}

func (p *pinger) receive(ctx context.Context) error {
	if _, err := p.pair.Received().Wait(ctx, p.done[:]); err != nil {
		return err
	}
	if err := p.done[0].Err; err != nil {
		return err
	}
	return p.pair.PostReceive(p.posts[p.done[0].ID])
}

// echoVerbs sends a Send for each that comes on one queue pair.
func echoVerbs(at string) error {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	p, err := newPinger(":" + host)
	if err != nil {
		return err
	}
	defer p.host.Close()
	l, err := p.host.Listen(port)
	if err != nil {
		return err
	}
	ctx := context.Background()
	r, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	if p.pair, err = r.Accept(ctx, p.options()); err != nil {
		return err
	}
	for err == nil {
		if err = p.receive(ctx); err == nil {
			err = p.send()
		}
	}
	return err
}

func pingVerbs(to, count string) error {
	n, err := pingsOf(count)
	if err != nil {
		return err
	}
	p, err := newPinger("")
	if err != nil {
		return err
	}
	defer p.host.Close()
	ctx := context.Background()
	if p.pair, err = p.host.Dial(ctx, fmt.Sprint("tcp:", to), p.options()); err != nil {
		return err
	}
	return oneWay(n, func() error {
		err := p.send()
		if err == nil {
			err = p.receive(ctx)
		}
		return err
	})
}
