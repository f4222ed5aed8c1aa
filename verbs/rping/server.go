package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dgrdma/dgrdma/verbs"
)

// Session is a client as its server has it. One goroutine at a time uses it.
type Session struct {
	talk
	unverified bool
	most       int
	data, want []byte
}

// refusal is what a client that is none of rping's is told.
const refusal = "this is rping, whose clients have no private data"

// Accept takes a client. One that has private data wants something else, and is rejected with words: ErrStranger.
func Accept(ctx context.Context, r *verbs.Request, o *Options) (*Session, error) {
	if o == nil {
		o = &Options{}
	}
	if len(r.Private) > 0 {
		err := r.TurnAway([]byte(refusal))
		return nil, errors.Join(fmt.Errorf("%w: it comes with %d bytes of private data", ErrStranger, len(r.Private)), err)
	}
	s := &Session{unverified: o.Unverified, most: o.Most}
	if s.most == 0 {
		s.most = MaxSize
	}
	s.wait = o.Wait
	var err error
	// Nothing is granted: who Reads and Writes is the server.
	s.q, err = r.Accept(ctx, s.options(o, nil))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// goAhead is what rping's server says: its own buffer, which it never fills.
var goAhead [verbs.KeySize]byte

// Pong takes one ping there and back, and returns what it was, which is good until the next one. io.EOF: the client has
// closed the connection between two pings.
func (s *Session) Pong(ctx context.Context) ([]byte, error) {
	source, err := s.told(ctx)
	if err != nil && errors.Is(err, verbs.ErrPeerClosed) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, s.wrong("waiting for it", err)
	}
	if err := s.take(ctx, source); err != nil {
		return nil, s.wrong("reading it", err)
	}
	sink, err := s.told(ctx)
	if err != nil {
		return nil, s.wrong("waiting to be told where it goes back to", err)
	}
	if err := s.giveBack(ctx, sink); err != nil {
		return nil, s.wrong("writing it back", err)
	}
	if !s.unverified {
		if err := compare(s.n, s.data, s.want); err != nil {
			return nil, err
		}
	}
	s.n++
	return s.data, nil
}

// told waits until the client tells of a buffer.
func (s *Session) told(ctx context.Context) (verbs.Key, error) {
	ctx, stop := s.within(ctx)
	defer stop()
	k, err := s.hear(ctx)
	return k, because(ctx, err)
}

// take Reads the client's data.
func (s *Session) take(ctx context.Context, from verbs.Key) error {
	if from.Length < 1 || int64(from.Length) > int64(s.most) {
		return fmt.Errorf("%w: the client's has %d bytes, and 1 to %d are taken", ErrSize, from.Length, s.most)
	}
	if len(s.data) != int(from.Length) {
		s.data = make([]byte, from.Length)
		s.want = make([]byte, from.Length)
	}
	ctx, stop := s.within(ctx)
	defer stop()
	if err := s.q.Read(ctx, s.data, from, 0); err != nil {
		return because(ctx, err)
	}
	Fill(s.want, s.n)
	return because(ctx, s.q.Send(ctx, goAhead[:]))
}

// giveBack Writes the data into the client's sink, up to the end of the string that it is: so does rping.
func (s *Session) giveBack(ctx context.Context, to verbs.Key) error {
	n := len(s.data)
	if end := bytes.IndexByte(s.data, 0); end >= 0 {
		n = end + 1
	}
	if int64(to.Length) < int64(n) {
		return fmt.Errorf("%w: the client's sink has %d bytes, and the ping %d", ErrSize, to.Length, n)
	}
	ctx, stop := s.within(ctx)
	defer stop()
	if err := s.q.Write(ctx, to, 0, s.data[:n]); err != nil {
		return because(ctx, err)
	}
	return because(ctx, s.q.Send(ctx, goAhead[:]))
}

// Close ends the connection when all is with the client.
func (s *Session) Close(ctx context.Context) error { return end(s.q.Shutdown(ctx)) }

// Abort ends the connection at once.
func (s *Session) Abort() { s.q.Abort() }

// end is what is wrong with how a connection ended.
func end(err error) error {
	if errors.Is(err, verbs.ErrPeerClosed) || errors.Is(err, verbs.ErrClosed) {
		return nil
	}
	return err
}
