package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Initiate asks the other side of a fresh connection, which waits in [Await], for what the options want.
// It owns nc from then on, and closes it if it fails. Errors: a [*SetUpError], a
// [*RejectedError], ErrOption, that of the context, or that of the connection.
func Initiate(ctx context.Context, nc net.Conn, o *Options) (*Conn, error) {
	if o == nil {
		o = &Options{}
	}
	request, err := o.offer()
	if err != nil {
		nc.Close()
		return nil, err
	}
	var c *Conn
	err = within(ctx, nc, o.Timeout, "asking", func() error {
		if _, err := nc.Write(request.append(nil)); err != nil {
			return err
		}
		// Not an octet more than the reply is read: frames may follow at once.
		frame, err := readSetup(nc, true)
		if err != nil {
			return err
		}
		reply, err := parseSetup(frame, true)
		if err != nil {
			return err
		}
		agreed, err := o.conclude(&request, &reply)
		if err == nil {
			c, err = newConn(nc, agreed)
		} else {
			o.terminate(nc, agreed, err)
		}
		return err
	})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// terminate tells the peer of a fault in its reply, as its first frame.
func (o *Options) terminate(nc net.Conn, agreed Agreed, err error) {
	var refused *SetUpError
	if o.Terminate == nil || !errors.As(err, &refused) || refused.Fault == 0 {
		return
	}
	agreed.Long = false
	c, err := newConn(nc, agreed)
	if err != nil {
		return
	}
	last := lastWord{fault: refused.Fault, terminate: o.Terminate}
	if _, err := c.Send(&last); err == nil {
		c.CloseWrite()
	}
}

// lastWord is a source of one message.
type lastWord struct {
	fault     ddp.Fault
	terminate func(ddp.Fault, *ddp.Message)
	said      bool
}

func (l *lastWord) Begin()   {}
func (l *lastWord) Sent(int) {}
func (l *lastWord) End()     {}
func (l *lastWord) Next(m *ddp.Message) bool {
	if l.said {
		return false
	}
	l.said = true
	l.terminate(l.fault, m)
	return true
}

// Request is what an initiator asks for. It is answered once, by Accept or Reject.
type Request struct {
	nc      net.Conn
	request SetUp
	patient time.Duration
}

// Await waits for the request of whoever has made the connection; timeout 0 is DefaultTimeout. It owns nc from
// then on, and closes it if it fails: errors are those of [Initiate].
func Await(ctx context.Context, nc net.Conn, timeout time.Duration) (*Request, error) {
	r := &Request{nc: nc, patient: timeout}
	err := within(ctx, nc, timeout, "waiting for the request of", func() error {
		frame, err := readSetup(nc, false)
		if err != nil {
			return err
		}
		r.request, err = parseSetup(frame, false)
		if err == nil {
			err = acceptable(&r.request)
		}
		if errors.Is(err, ErrMarkers) || errors.Is(err, ErrEnhanced) {
			r.refuse(nil)
		}
		return err
	})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return r, nil
}

// Private is what the initiator's program has to say.
func (r *Request) Private() []byte { return r.request.Private }

// Rev is the revision of MPA that the initiator wants.
func (r *Request) Rev() int { return int(r.request.Rev) }

// Reads are the IRD and ORD that the initiator has and wants. Not ok: it does not say.
func (r *Request) Reads() (ird, ord int, ok bool) {
	q := &r.request
	return int(q.IRD), int(q.ORD), q.Enhanced && q.IRD != NotNegotiated && q.ORD != NotNegotiated
}

// LocalAddr returns the address of this side.
func (r *Request) LocalAddr() net.Addr { return r.nc.LocalAddr() }

// RemoteAddr returns the address of the initiator.
func (r *Request) RemoteAddr() net.Addr { return r.nc.RemoteAddr() }

// Accept says yes. Unless peer-to-peer mode is agreed, or the program knows better, the initiator has to send
// first (MPA-011). If it fails the connection is closed, but after ErrOption the request
// can still be answered.
func (r *Request) Accept(ctx context.Context, o *Options) (*Conn, error) {
	if o == nil {
		o = &Options{}
	}
	reply, agreed, err := o.answer(&r.request)
	if errors.Is(err, ErrOption) {
		return nil, err
	}
	var c *Conn
	err = within(ctx, r.nc, o.Timeout, "accepting", func() error {
		if err != nil {
			r.refuse(nil)
			return err
		}
		if early(r.nc) {
			return &SetUpError{Err: ErrEarly, What: "there is more than a request"}
		}
		if _, err := r.nc.Write(reply.append(nil)); err != nil {
			return err
		}
		c, err = newConn(r.nc, agreed)
		return err
	})
	if err != nil {
		r.nc.Close()
		return nil, err
	}
	return c, nil
}

// farewell is how long a rejected peer has to close the connection.
const farewell = time.Second

// Reject says no, and what the program has to say to that, at most SafePrivate octets. The connection
// is closed when the peer has closed it, or a second later: siw tells its program nothing (S10) of a reply behind which
// the end comes at once. After ErrOption the request can still be answered.
func (r *Request) Reject(ctx context.Context, private []byte) error {
	err := r.Refuse(ctx, private)
	if err == nil {
		r.Part(ctx)
	}
	return err
}

// Refuse is Reject that does not wait for the peer: Part has to follow. If it fails, but for ErrOption, the connection
// is closed.
func (r *Request) Refuse(ctx context.Context, private []byte) error {
	if err := (&Options{Private: private}).check(r.request.Enhanced); err != nil {
		return err
	}
	err := within(ctx, r.nc, r.patient, "rejecting", func() error { return r.refuse(private) })
	if err != nil {
		r.nc.Close()
	}
	return err
}

// Part waits until a refused peer has closed the connection, a second at most, and closes it.
func (r *Request) Part(ctx context.Context) {
	// The answer is given; how the peer takes it is its own affair.
	_ = within(ctx, r.nc, farewell, "rejecting", func() error {
		_, err := io.Copy(io.Discard, io.LimitReader(r.nc, maxFrame))
		return err
	})
	r.nc.Close()
}

// refuse writes a reply that says no.
func (r *Request) refuse(private []byte) error {
	s := refusal(&r.request, private)
	_, err := r.nc.Write(s.append(nil))
	return err
}

// readSetup reads a request or reply, and nothing behind it. What it returns may be too short only
// together with an error.
func readSetup(nc net.Conn, reply bool) ([]byte, error) {
	b := make([]byte, SetUpHeader)
	for n := 0; ; {
		size, err := setupSize(b[:n], reply)
		if err != nil {
			return nil, err
		}
		if size > len(b) {
			b = append(make([]byte, 0, size), b...)[:size]
		}
		if n == size && n >= SetUpHeader {
			return b, nil
		}
		got, err := nc.Read(b[n:])
		n += got
		if err != nil && n < len(b) {
			return nil, err
		}
	}
}

// early says whether something has arrived. It cannot be seen of connections that are not package net's.
func early(nc net.Conn) bool {
	raw, err := rawConn(nc)
	if raw == nil || err != nil {
		return false
	}
	found := false
	raw.Control(func(fd uintptr) { found = peek(fd) })
	return found
}

// within does something with the connection for as long as the context and the time allow, and says what
// its end means. Afterwards the connection waits as long as it likes.
func within(ctx context.Context, nc net.Conn, wait time.Duration, doing string, do func() error) error {
	if wait <= 0 {
		wait = DefaultTimeout
	}
	nc.SetDeadline(time.Now().Add(wait))
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		nc.SetDeadline(time.Unix(1, 0))
		close(fired)
	})
	err := do()
	if !stop() {
		<-fired
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			err = context.Cause(ctx)
		}
	}
	nc.SetDeadline(time.Time{})
	var setUp *SetUpError
	var rejected *RejectedError
	at := nc.RemoteAddr()
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejected):
		rejected.From = at
		return err
	case errors.As(err, &setUp):
		return fmt.Errorf("%s %v: %w", doing, at, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s %v: %w: nothing whole came within %v; is there an iWARP peer? (%w)", doing, at, ErrLost, wait, err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s %v: %w: the peer closed it; it may want another revision of MPA or less private data (%w)", doing, at, ErrLost, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%s %v: %w: %w", doing, at, ErrLost, err)
}
