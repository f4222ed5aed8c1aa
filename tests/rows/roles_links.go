package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/netconn"
	"github.com/dgrdma/dgrdma/link/stream"
)

// Kinds of flows over links, with defaults as a program has them.
const (
	kindCopy = "copy" // io.Copy over netconn
	kindSend = "send" // what dgrdmacat send does
)

// overLink reports whether flows of a kind are over links.
func overLink(kind string) bool { return kind == kindCopy || kind == kindSend }

// linkPort is the port of copies; arbitrary.
const linkPort = "path"

// linkReserve is the memory of a host that only sends, as dgrdmacat send has it.
const linkReserve = 1 << 20

// arrivals counts what is written to it.
type arrivals struct{ atomic.Uint64 }

func (a *arrivals) Write(b []byte) (int, error) {
	a.Add(uint64(len(b)))
	return len(b), nil
}

// linkSink takes what one flow over a link brings until its standard input ends, and prints where it is; then for each line that it reads how many
// bytes have come.
func linkSink(kind, at string) error {
	memory := 0
	if kind == kindSend {
		memory = 2 * stream.Memory // as dgrdmacat listen has it
	}
	h, err := link.Open(at, &link.Config{Memory: memory})
	if err != nil {
		return err
	}
	defer h.Close()
	var got arrivals
	if kind == kindSend {
		l, err := stream.Listen(h, nil)
		if err != nil {
			return err
		}
		go func() {
			if s, err := l.Accept(context.Background()); err == nil {
				s.Receive(context.Background(), stream.Writer(&got))
			}
		}()
	} else {
		l, err := netconn.Listen(h, linkPort, nil)
		if err != nil {
			return err
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				io.Copy(&got, c)
				c.Close()
			}
		}()
	}
	fmt.Println(h.URL())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(got.Load())
	}
	return nil
}

// noise has something to read at any time.
type noise struct{}

func (noise) Read(b []byte) (int, error) { return len(b), nil }

// source returns what a flow sends.
func source(bytes int) io.Reader {
	if bytes > 0 {
		return io.LimitReader(noise{}, int64(bytes))
	}
	return noise{}
}

// copyFlow copies to a connection.
type copyFlow struct {
	host *link.Host
	conn net.Conn
	sent atomic.Uint64
}

func (f *copyFlow) dial(ctx context.Context, local, to string) (err error) {
	if f.host, err = link.Open(local, nil); err != nil {
		return err
	}
	f.conn, err = (&netconn.Dialer{Host: f.host}).DialContext(ctx, netconn.Network, to+":"+linkPort)
	return err
}

func (f *copyFlow) send(ctx context.Context, bytes int) error {
	if end, ok := ctx.Deadline(); ok {
		f.conn.SetDeadline(end)
	}
	n, err := io.Copy(f.conn, source(bytes))
	f.sent.Store(uint64(n))
	if bytes == 0 && (ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		return nil
	}
	if err == nil {
		err = f.conn.(*netconn.Conn).CloseWrite()
	}
	if err != nil {
		return err
	}
	if _, err = f.conn.Read(make([]byte, 1)); err == io.EOF {
		return nil // the other side has it all
	}
	return fmt.Errorf("the other side has not read all: %w", err)
}

func (f *copyFlow) delivered() uint64 { return f.sent.Load() }

func (f *copyFlow) close() { f.host.Close() }

// streamFlow sends a stream.
type streamFlow struct {
	host *link.Host
	to   string
	sent atomic.Uint64
}

func (f *streamFlow) dial(_ context.Context, local, to string) (err error) {
	f.to = to
	f.host, err = link.Open(local, &link.Config{Memory: linkReserve})
	return err
}

func (f *streamFlow) send(ctx context.Context, bytes int) error {
	size := int64(stream.Unknown)
	if bytes > 0 {
		size = int64(bytes)
	}
	s, err := stream.Dial(ctx, f.host, f.to, size, nil)
	if err != nil {
		return err
	}
	err = s.Send(ctx, source(bytes))
	f.sent.Store(uint64(s.Result().Sent))
	if bytes == 0 && ctx.Err() != nil {
		return nil
	}
	return err
}

func (f *streamFlow) delivered() uint64 { return f.sent.Load() }

func (f *streamFlow) close() { f.host.Close() }
