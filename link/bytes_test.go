package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// reads is a reader that brings a piece at each read, and its error with the last.
type reads struct {
	pieces []string
	err    error
	during func() // at each read
}

func (r *reads) Read(b []byte) (n int, err error) {
	if r.during != nil {
		r.during()
	}
	n = copy(b, r.pieces[0])
	if r.pieces = r.pieces[1:]; len(r.pieces) == 0 {
		err = r.err
	}
	return n, err
}

// messages receives what there is, as it is cut.
func messages(t *testing.T, c *Consumer) (got []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for m, err := range c.Messages(ctx) {
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			break
		}
		got = append(got, string(m.Bytes))
	}
	return got
}

// TestReadFrom checks that each read that brings something is a message. A read that brings nothing is
// none, and its buffer is free again. All that was read is counted.
func TestReadFrom(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		r    reads
		want []string
		err  error
	}{
		{"end after the last", reads{pieces: []string{"a", "", "bcd", "", ""}, err: io.EOF}, []string{"a", "bcd"}, nil},
		{"end with the last", reads{pieces: []string{"a", "bcd"}, err: io.EOF}, []string{"a", "bcd"}, nil},
		{"an error after the last", reads{pieces: []string{"a", ""}, err: broken}, []string{"a"}, broken},
		{"an error with the last", reads{pieces: []string{"", "bcd"}, err: broken}, []string{"bcd"}, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, _, out, in := pair(t, newNet(t, 4), nil, &Options{Buffers: 4, Size: 8})
				n, err := out.Out.ReadFrom(&c.r)
				if want := int64(len(strings.Join(c.want, ""))); n != want || err != c.err {
					t.Errorf("%d bytes, %v; want %d, %v", n, err, want, c.err)
				}
				if err := out.Out.Send(soon(t), 0, []byte("next")); err != nil {
					t.Errorf("after it: %v", err)
				}
				if got := messages(t, in.In); !slices.Equal(got, append(c.want, "next")) {
					t.Errorf("%q were received", got)
				}
			})
		})
	}
}

// TestReadFromNothing checks that a reader that brings nothing again and again takes no memory.
func TestReadFromNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, _ := pair(t, newNet(t, 4), nil, &Options{Buffers: 4, Size: 1 << 16})
		const times = 1000
		got := allocated(func() {
			if n, err := out.Out.ReadFrom(&reads{pieces: make([]string, times), err: io.EOF}); n != 0 || err != nil {
				t.Error(n, err)
			}
		})
		if got > times/10<<16 {
			t.Errorf("%d bytes were allocated for %d reads", got, times)
		}
	})
}

// TestReadFromAndAcquire checks that a goroutine that acquires a buffer while a reader brings nothing
// keeps that buffer and its place.
func TestReadFromAndAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, _ := pair(t, newNet(t, 4), nil, &Options{Buffers: 8, Size: 8})
		r := reads{pieces: []string{""}, err: io.EOF, during: func() {
			if _, err := out.Out.Acquire(soon(t)); err != nil {
				t.Error(err)
			}
		}}
		if n, err := out.Out.ReadFrom(&r); n != 0 || err != nil {
			t.Error(n, err)
		}
		if got := out.Stats().Out.Acquired; got != 2 {
			t.Errorf("%d buffers are acquired, want the reader's and the other", got)
		}
	})
}

// TestReadFromAnEndedLink checks that what was read last and not sent is an error, though the reader
// is at its end.
func TestReadFromAnEndedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, _ := pair(t, newNet(t, 4), nil, &Options{Buffers: 4, Size: 8})
		r := reads{pieces: []string{"abc"}, err: io.EOF, during: func() { out.endEarly("enough") }}
		if n, err := out.Out.ReadFrom(&r); n != 3 || !errors.Is(err, ErrClosed) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// TestStreamsOfADeadLink checks that streams say how much they moved, and why no more.
func TestStreamsOfADeadLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := &Options{Directions: Both, Buffers: 8, Size: 4}
		_, _, l, peer := pair(t, newNet(t, 4), both, both)
		if n, err := l.Out.Write([]byte("0123456789")); n != 10 || err != nil {
			t.Error(n, err)
		}
		if n, err := peer.Out.Write([]byte("0123456789")); n != 10 || err != nil {
			t.Error(n, err)
		}
		time.Sleep(time.Second)
		r := reads{pieces: []string{"abc", "def", "ghi"}, err: io.EOF}
		r.during = func() {
			if len(r.pieces) == 2 {
				l.fail(ErrProtocol)
			}
		}
		if n, err := l.Out.ReadFrom(&r); n != 6 || !errors.Is(err, ErrProtocol) {
			t.Errorf("ReadFrom: %d bytes, %v", n, err)
		}
		if n, err := l.Out.Write([]byte("0123456789")); n != 0 || !errors.Is(err, ErrProtocol) {
			t.Errorf("Write: %d bytes, %v", n, err)
		}
		var got bytes.Buffer
		if n, err := l.In.WriteTo(&got); n != 10 || !errors.Is(err, ErrProtocol) || got.String() != "0123456789" {
			t.Errorf("WriteTo: %d bytes, %v: %q", n, err, got.String())
		}
		if n, err := l.In.Read(make([]byte, 1)); n != 0 || !errors.Is(err, ErrProtocol) {
			t.Errorf("Read: %d bytes, %v", n, err)
		}
	})
}

// TestReadCuts checks that messages are read in any cut, that messages without bytes are passed over,
// and that a Read of no bytes does not wait.
func TestReadCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, in := pair(t, newNet(t, 4), nil, &Options{Buffers: 8, Size: 8})
		if n, err := in.In.Read(nil); n != 0 || err != nil {
			t.Errorf("nothing: %d, %v", n, err)
		}
		for _, s := range []string{"", "a", "", "", "bcd", ""} {
			if err := out.Out.Send(soon(t), 0, []byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Out.Close(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"a", "bc", "d"} {
			b := make([]byte, 2)
			if n, err := in.In.Read(b); string(b[:n]) != want || err != nil {
				t.Errorf("%q, %v; want %q", b[:n], err, want)
			}
		}
		if n, err := in.In.Read(make([]byte, 2)); n != 0 || err != io.EOF {
			t.Errorf("after the end: %d, %v", n, err)
		}
	})
}

// TestReadsOutOfTurn checks that a Read cannot give back a message before one that the program holds:
// the error says so.
func TestReadsOutOfTurn(t *testing.T) {
	for _, second := range []string{"", "bc"} {
		for name, read := range map[string]func(c *Consumer) (int, error){
			"Read":    func(c *Consumer) (int, error) { return c.Read(make([]byte, 8)) },
			"WriteTo": func(c *Consumer) (int, error) { n, err := c.WriteTo(io.Discard); return int(n), err },
		} {
			t.Run(name+" "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, _, out, in := pair(t, newNet(t, 4), nil, &Options{Buffers: 8, Size: 8})
					for _, s := range []string{"a", second, "def"} {
						if err := out.Out.Send(soon(t), 0, []byte(s)); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := in.In.Recv(soon(t)); err != nil {
						t.Fatal(err)
					}
					if n, err := read(in.In); n != len(second) || !errors.Is(err, ErrOutOfTurn) {
						t.Errorf("%d bytes, %v", n, err)
					}
				})
			})
		}
	}
}

// TestWriteToKeepsTheRest checks that what a writer did not take is there for the next one, and that
// its error comes with how much it took.
func TestWriteToKeepsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, in := pair(t, newNet(t, 4), nil, &Options{Buffers: 8, Size: 8})
		for _, s := range []string{"ab", "cdef"} {
			if err := out.Out.Send(soon(t), 0, []byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Out.Close(); err != nil {
			t.Fatal(err)
		}
		full := errors.New("full")
		if n, err := in.In.WriteTo(writer(func(b []byte) (int, error) {
			if len(b) == 4 {
				return 1, full
			}
			return len(b), nil
		})); n != 3 || err != full {
			t.Errorf("%d bytes, %v", n, err)
		}
		var rest bytes.Buffer
		if n, err := in.In.WriteTo(&rest); n != 3 || err != nil || rest.String() != "def" {
			t.Errorf("%d bytes, %v: %q", n, err, rest.String())
		}
	})
}

// plainReader hides that a bytes.Reader can write itself, and calls look at each read.
type plainReader struct {
	io.Reader
	look func()
}

func (r plainReader) Read(b []byte) (int, error) {
	r.look()
	return r.Reader.Read(b)
}

// TestStreamMemory checks that a stream whose goroutine polls for its host uses a few buffers again
// and again, though it is ahead of the consumer by many, and frames are lost.
func TestStreamMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 2) // callers of host 1 poll
		n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 0.05})
		a, b := n.host(1, nil), n.host(2, &Config{Memory: 16 << 20})
		out, in := join(t, a, b, "port", &Options{}, &Options{Buffers: 64, Size: 200_000})
		if a.ep.Ahead() >= b.ep.Ahead() {
			t.Fatal("host 1 is to help, host 2 not")
		}
		want := make([]byte, 16_000_000)
		for i := range want {
			want[i] = byte(i ^ i>>8)
		}
		var got bytes.Buffer
		var most int64
		done := make(chan error, 1)
		go func() {
			_, err := io.Copy(&got, in.In)
			done <- err
		}()
		if _, err := io.Copy(out.Out, plainReader{bytes.NewReader(want), func() { most = max(most, a.budget.Used()) }}); err != nil {
			t.Fatal(err)
		}
		if err := out.Out.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes arrived, want %d as they were sent; %v", got.Len(), len(want), err)
		}
		// Messages that wait to be sent, or to be acknowledged, the one being read into, and end of file.
		underWay := out.peer.conn.Profile().Window * 1490
		if bound := int64((a.ep.Ahead()+underWay)/200_000+3) << 18; most > bound {
			t.Errorf("messages took %d bytes, want %d at most", most, bound)
		}
	})
}

// TestStreamContexts checks that a call that reads or writes bytes waits no longer than its context,
// and that what was written before that is counted.
func TestStreamContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, in := pair(t, newNet(t, 1), nil, &Options{Buffers: 2, Size: 8})
		cause := errors.New("too late")
		short := func() context.Context {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			t.Cleanup(cancel)
			return ctx
		}
		b := make([]byte, 8)
		if n, err := in.In.ReadContext(short(), b); n != 0 || err != cause {
			t.Errorf("ReadContext: %d, %v", n, err)
		}
		if n, err := in.In.WriteToContext(short(), io.Discard); n != 0 || err != cause {
			t.Errorf("WriteToContext: %d, %v", n, err)
		}
		if n, err := out.Out.WriteContext(short(), make([]byte, 20)); n != 16 || err != cause {
			t.Errorf("WriteContext: %d, %v, want 16 bytes, which two buffers have", n, err)
		}
		late := short()
		time.Sleep(2 * time.Second)
		if n, err := in.In.ReadContext(late, b); n != 8 || err != nil {
			t.Errorf("what is there: %d, %v", n, err)
		}
		if n, err := in.In.WriteToContext(late, io.Discard); n != 8 || err != cause {
			t.Errorf("what is there, then nothing: %d, %v", n, err)
		}
		if n, err := out.Out.WriteContext(late, b); n != 0 || err != cause {
			t.Errorf("written too late: %d, %v", n, err)
		}
	})
}

// TestReadThenWriteTo checks that bytes come once and in order, by whatever calls they are taken and
// however often that fails.
func TestReadThenWriteTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, &Options{Buffers: 3, Size: 10})
		want := []byte("a header of fifteen and then all the rest of what is sent")
		go func() {
			out.Out.Write(want)
			out.Close()
		}()
		head := make([]byte, 15)
		if _, err := io.ReadFull(in.In, head); err != nil {
			t.Fatal(err)
		}
		rest := &picky{}
		_, err := in.In.WriteTo(rest)
		if !errors.Is(err, errPicky) {
			t.Errorf("WriteTo: %v", err)
		}
		if _, err := io.Copy(rest, in.In); err != nil {
			t.Errorf("io.Copy: %v", err)
		}
		if got := append(head, rest.Bytes()...); !bytes.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// picky takes a few bytes of each Write, and fails once.
type picky struct {
	bytes.Buffer
	failed bool
}

var errPicky = errors.New("no more for now")

func (p *picky) Write(b []byte) (int, error) {
	if !p.failed && p.Len() > 20 {
		p.failed = true
		p.Buffer.Write(b[:1])
		return 1, errPicky
	}
	return p.Buffer.Write(b)
}
