package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

const (
	portName    = "crash"
	linkBuffers = 8
	linkSize    = 8 << 10
)

// runLinks makes one link after the other, on the side 0, and accepts them on the other one. Each goes both ways.
func (s *side) runLinks() error {
	host, err := link.Open(s.URL, &link.Config{Memory: 4 << 20, Endpoint: s.config()})
	if err != nil {
		return err
	}
	s.ep = host.Endpoint()
	options := link.Options{Directions: link.Both, Buffers: linkBuffers, Size: linkSize}
	if s.Side == 1 {
		port, err := host.Listen(portName, &options)
		if err != nil {
			return err
		}
		s.ready(host.URL())
		for {
			l, err := port.Accept(context.Background())
			if err != nil {
				return err
			}
			if b := l.Private(); len(b) == 6 {
				go s.carry(l, name{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint32(b[2:])})
			}
		}
	}
	s.ready(host.URL())
	dice := worlds.NewDice(s.Seed, uint64(s.Life)<<1)
	for n := (name{uint16(s.Life), 1}); ; n.number++ {
		o := options
		o.Private = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(nil, n.life), n.number)
		l, err := host.Dial(context.Background(), s.peerURL(), portName, &o)
		if err != nil {
			s.linkFailed(n, err)
			time.Sleep(dice.Span(100*time.Microsecond, 5*time.Millisecond))
			continue
		}
		s.carry(l, n)
	}
}

// linkFailed judges an error of a link.
func (s *side) linkFailed(n name, err error) {
	var e *link.Error
	if !errors.As(err, &e) {
		s.wrong(saysNothing, n, err)
		return
	}
	// A program that began just now may not listen yet.
	for _, is := range []error{link.ErrPeerClosed, link.ErrNoAnswer, link.ErrRefused, dgrdma.ErrNoService} {
		if errors.Is(err, is) {
			return
		}
	}
	if !says(err) {
		s.wrong(saysNothing, n, err)
	}
}

// carry uses a link until it ends.
func (s *side) carry(l *link.Link, n name) {
	s.report(record{kind: isDialed, life: n.life, number: n.number})
	var in sync.WaitGroup
	in.Go(func() { s.consume(l, n) })
	s.produce(l, n)
	in.Wait()
	if err := l.Close(); err != nil {
		s.linkFailed(n, err)
	}
}

// produce sends messages, some of which it waits for.
func (s *side) produce(l *link.Link, n name) {
	ctx := context.Background()
	dice := worlds.NewDice(s.Seed, uint64(n.life)<<40|uint64(n.number)<<8|uint64(s.Life)<<1|uint64(s.Side))
	last := []uint32{1, 30, 300, 3000}[n.number%4] // both ways: the link stays until both are through
	var b [linkSize]byte
	for k := uint32(0); k < last; k++ {
		for s.journal.full() > 0.9 {
			time.Sleep(time.Millisecond)
		}
		size := putMessage(b[:], n, s.Side, k)
		err := l.Out.Send(ctx, uint8(k), b[:size])
		if err == nil && (dice.Chance(0.1) || k+1 == last) {
			if err = l.Out.Flush(ctx); err == nil {
				s.report(record{kind: isFlushed, life: n.life, number: n.number, extra: k + 1})
				s.reached(flushed)
			}
		}
		if err != nil {
			s.linkFailed(n, err)
			return
		}
		if dice.Chance(0.1) {
			time.Sleep(dice.Span(50*time.Microsecond, 5*time.Millisecond))
		}
	}
	if err := l.Out.Close(); err != nil {
		s.linkFailed(n, err)
	}
}

// putMessage writes message k of a link, and returns how long it is.
func putMessage(b []byte, n name, from int, k uint32) (size int) {
	size = min(name{n.life, k + 1}.size(), linkSize)
	id := uint64(n.life)<<48 | uint64(n.number&0xfff)<<36 | uint64(k&0xfffff)<<16 | uint64(from)<<15
	for i := 0; i < size; i += wordSize {
		binary.LittleEndian.PutUint64(b[i:], id|uint64(i/wordSize))
	}
	return size
}

// consume receives what comes.
func (s *side) consume(l *link.Link, n name) {
	var want [linkSize]byte
	for k := uint32(0); ; k++ {
		m, err := l.In.Recv(context.Background())
		if err != nil {
			s.report(record{kind: isOver, life: n.life, number: n.number, extra: k})
			if !errors.Is(err, io.EOF) {
				s.linkFailed(n, err)
			}
			return
		}
		size := putMessage(want[:], n, 1-s.Side, k)
		if m.Opcode != uint8(k) || string(m.Bytes) != string(want[:size]) {
			s.wrong(badMessage, n, k)
		}
		s.report(record{kind: isReceived, life: n.life, number: n.number, extra: k})
		s.reached(received)
		if err := l.In.Release(m); err != nil {
			s.linkFailed(n, err)
		}
	}
}
