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

// TestReadFrom: each read that brings something is a message, one that brings nothing is
// none, and what it was to read into is free again; all that was read is counted.
func TestReadFrom(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		r    reads
		want []string
		err  error
	}{
		{"end behind the last", reads{pieces: []string{"a", "", "bcd", "", ""}, err: io.EOF}, []string{"a", "bcd"}, nil},
		{"end with the last", reads{pieces: []string{"a", "bcd"}, err: io.EOF}, []string{"a", "bcd"}, nil},
		{"an error behind the last", reads{pieces: []string{"a", ""}, err: broken}, []string{"a"}, broken},
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

// TestReadFromNothing: a reader that brings nothing again and again takes no memory.
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

// TestReadFromBesideOthers: who acquires a buffer while a reader brings nothing keeps
// that buffer and its turn.
func TestReadFromBesideOthers(t *testing.T) {
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

// TestReadFromAnEndedLink: what was read last and not sent is no success, though the
// reader is at its end.
func TestReadFromAnEndedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, _ := pair(t, newNet(t, 4), nil, &Options{Buffers: 4, Size: 8})
		r := reads{pieces: []string{"abc"}, err: io.EOF, during: func() { out.leave("enough") }}
		if n, err := out.Out.ReadFrom(&r); n != 3 || !errors.Is(err, ErrClosed) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// TestStreamsOfADeadLink say how far they got, and why no further.
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

// TestReadCuts: messages are read in any cut, those without bytes are passed over, and
// who asks for nothing waits for nothing.
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
			t.Errorf("behind the end: %d, %v", n, err)
		}
	})
}

// TestReadsOutOfTurn: who holds a message that it received cannot have others given back
// before it by reading: the error says so.
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

// TestWriteToKeepsTheRest: what a writer did not take is there for the next, and its
// error is told with how much it took.
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
