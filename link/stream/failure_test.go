package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

func tallyOf(n uint64, more ...byte) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, n), more...)
}

// fileIn begins a file "f" in a new directory.
func fileIn(t *testing.T) (dir string, file Sink) {
	t.Helper()
	dir = t.TempDir()
	file, err := CreateFile(filepath.Join(dir, "f"), false)
	if err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// TestReceiveDistrusts checks that, whatever a sender says, the file is whole or not there, and that
// the sender is told what was wrong.
func TestReceiveDistrusts(t *testing.T) {
	type message struct {
		opcode uint8
		bytes  []byte
	}
	for _, c := range []struct {
		name     string
		messages []message
		is       error
		says     string
	}{
		{"too little", []message{{opData, []byte("abc")}, {opEnd, tallyOf(5)}}, ErrMismatch, "what arrived is not what was sent: 3 bytes here, 5 bytes there"},
		{"too much", []message{{opData, []byte("abc")}, {opEnd, tallyOf(2)}}, ErrMismatch, "3 bytes here, 2 bytes there"},
		{"less than was announced", []message{{opData, []byte("abc")}, {opEnd, tallyOf(3)}}, ErrMismatch, "3 bytes here, 5 were announced"},
		{"no tally", []message{{opEnd, []byte("x")}}, ErrMismatch, "0 bytes here, nothing that can be read there"},
		{"a sum that was not asked for", []message{{opEnd, tallyOf(0, make([]byte, 32)...)}}, ErrMismatch, "0 bytes with SHA-256 " + strings.Repeat("0", 64) + " there"},
		{"receipt out of place", []message{{opReceipt, tallyOf(0)}}, link.ErrProtocol, "a message of kind 2 came that is not expected"},
		{"unknown kind", []message{{77, nil}}, link.ErrProtocol, "a message of kind 77"},
		{"end of file too early", []message{{opData, []byte("abc")}}, ErrIncomplete, ErrIncomplete.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			dir, file := fileIn(t)
			out, in := pair(t, 5, nil, nil)
			x := out.Link()
			told := make(chan error)
			go func() {
				for _, m := range c.messages {
					x.Out.Send(t.Context(), m.opcode, m.bytes)
				}
				if c.is == ErrIncomplete {
					x.Out.Close()
				}
				_, err := x.In.Recv(t.Context())
				told <- err
			}()
			if err := in.Receive(t.Context(), file); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
			var aborted *link.AbortError
			if err := <-told; !errors.As(err, &aborted) || !strings.Contains(aborted.Reason, c.says) {
				t.Errorf("the sender was told %v", err)
			}
			fixture.WantFiles(t, dir, nil)
			x.Close()
		})
	}
}

// TestSendDistrusts checks that a receipt has to be of what was sent.
func TestSendDistrusts(t *testing.T) {
	const plain, summed = "\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff"
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for _, c := range []struct {
		name    string
		private string
		receipt []byte
		want    func(error) bool
	}{
		{"good", plain, tallyOf(3), is(nil)},
		{"less", plain, tallyOf(2), is(ErrMismatch)},
		{"no sum", summed, tallyOf(3), is(ErrMismatch)},
		// For whichever is noticed first.
		{"none", plain, nil, func(err error) bool { return errors.Is(err, ErrIncomplete) || errors.Is(err, link.ErrPeerClosed) }},
		{"stranger", "welcome", nil, func(err error) bool { var hello *HelloError; return errors.As(err, &hello) && hello.OtherVersion() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			a, b := openHost(t), openHost(t)
			port, err := b.Listen(DefaultPort, &link.Options{Directions: link.Both, Private: []byte(c.private)})
			if err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				x, err := port.Accept(t.Context())
				if err != nil {
					return
				}
				defer x.Close()
				for m, err := range x.In.Messages(t.Context()) {
					if err != nil || m.Opcode == opEnd {
						break
					}
				}
				if c.receipt != nil {
					x.Out.Send(t.Context(), opReceipt, c.receipt)
				}
				x.Out.Close()
				x.In.Recv(t.Context())
			}()
			s, err := Dial(t.Context(), a, b.URL(), Unknown, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Send(t.Context(), strings.NewReader("abc")); !c.want(err) {
				t.Error(err)
			}
			<-gone
		})
	}
}

// failing is a file that cannot be kept, or written.
type failing struct {
	Sink
	write, commit error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.write != nil {
		return 0, f.write
	}
	return f.Sink.Write(b)
}

func (f *failing) Commit() error { return f.commit }

// TestSinkFails checks that the sender is told why, but no names of files, and that nothing is left.
func TestSinkFails(t *testing.T) {
	secret := &fs.PathError{Op: "write", Path: "/home/secret", Err: syscall.ENOSPC}
	for _, c := range []struct {
		name string
		sink failing
		told string
	}{
		{"write", failing{write: secret}, "cannot write the file: no space left on device"},
		{"commit", failing{commit: secret}, "cannot keep the file: no space left on device"},
		{"exists", failing{commit: existsError("/home/secret")}, "cannot keep the file: file already exists"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			dir, file := fileIn(t)
			c.sink.Sink = file
			out, in := pair(t, Unknown, nil, nil)
			sent, received := both(func() error { return out.Send(t.Context(), strings.NewReader("abc")) }, func() error { return in.Receive(t.Context(), &c.sink) })
			var told *link.AbortError
			var local *LocalError
			if !errors.As(sent, &told) || told.Reason != c.told {
				t.Errorf("the sender was told %v, want %s", sent, c.told)
			}
			if !errors.As(received, &local) || !strings.Contains(received.Error(), "/home/secret") {
				t.Errorf("the receiver failed with %v", received)
			}
			fixture.WantFiles(t, dir, nil)
		})
	}
}

// TestSourceFails checks that what cannot be read ends the stream for the receiver too.
func TestSourceFails(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	dir, file := fileIn(t)
	out, in := pair(t, Unknown, nil, nil)
	broken := io.MultiReader(strings.NewReader("some"), iotestErr{os.ErrPermission})
	sent, received := both(func() error { return out.Send(t.Context(), broken) }, func() error { return in.Receive(t.Context(), file) })
	var told *link.AbortError
	if !errors.Is(sent, os.ErrPermission) || !errors.As(received, &told) || told.Reason != "cannot read the input: permission denied" {
		t.Errorf("%v, %v", sent, received)
	}
	fixture.WantFiles(t, dir, nil)
}

type iotestErr struct{ error }

func (e iotestErr) Read([]byte) (int, error) { return 0, e.error }

// endless is a source that has one piece and then waits.
type endless struct{ *bytes.Reader }

func (e endless) Wait(ctx context.Context) error {
	if e.Len() > 0 {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
func (endless) More() bool     { return false }
func (endless) String() string { return "the pipe" }

// TestContextEnds checks that the peer is told at once, and with what reason, and that nothing is left
// of the file, and no goroutine.
func TestContextEnds(t *testing.T) {
	enough := errors.New("enough")
	for _, side := range []string{"sender", "receiver"} {
		t.Run(side, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			dir, file := fileIn(t)
			out, in := pair(t, Unknown, nil, nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			sends, receives := ctx, t.Context()
			if side == "receiver" {
				sends, receives = receives, sends
			}
			go func() {
				for in.Result().Received == 0 {
					time.Sleep(time.Millisecond)
				}
				cancel(enough)
			}()
			ended, other := both(func() error { return out.Send(sends, endless{bytes.NewReader([]byte("some"))}) }, func() error { return in.Receive(receives, file) })
			if side == "receiver" {
				ended, other = other, ended
			}
			var told *link.AbortError
			if !errors.Is(ended, enough) || !errors.As(other, &told) || told.Reason != "enough" {
				t.Errorf("%v, %v", ended, other)
			}
			fixture.WantFiles(t, dir, nil)
		})
	}
}

// TestHelloIsGolden checks the bytes by which the two sides know each other.
func TestHelloIsGolden(t *testing.T) {
	for _, c := range []struct {
		h    hello
		want string
	}{
		{hello{size: -1}, "01 00 ff ff ff ff ff ff ff ff"},
		{hello{size: 0x0102030405060708, duplex: true}, "01 01 08 07 06 05 04 03 02 01"},
		{hello{size: 5, checksum: true}, "01 02 05 00 00 00 00 00 00 00"},
		{hello{duplex: true, checksum: true}, "01 03 00 00 00 00 00 00 00 00"},
	} {
		b := c.h.encode()
		if got := fmt.Sprintf("% x", b); got != c.want {
			t.Errorf("%+v: %s, want %s", c.h, got, c.want)
		}
		if back, err := parseHello(b); err != nil || back != c.h {
			t.Errorf("%s: %+v, %v", c.want, back, err)
		}
	}
	if opData != 0 || opEnd != 1 || opReceipt != 2 {
		t.Error("opcodes changed")
	}
}

// stuckSink is a sink that the system holds up in a write.
type stuckSink struct {
	Sink
	got     chan []byte
	release chan struct{}
}

func (s stuckSink) Write(b []byte) (int, error) {
	s.got <- b
	<-s.release
	return len(b), nil
}

// TestStuckWriteKeepsItsMemory checks that no other link gets the memory that a sink still reads when its
// stream has failed: what another peer sends would be written in place of what came (F15).
func TestStuckWriteKeepsItsMemory(t *testing.T) {
	a, h := openHost(t), openHost(t)
	port, err := Listen(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out, in *Stream
	if dialed, accepted := both(
		func() (err error) { out, err = Dial(t.Context(), a, h.URL(), 5, nil); return err },
		func() (err error) { in, err = port.Accept(t.Context()); return err }); dialed != nil || accepted != nil {
		t.Fatal(dialed, accepted)
	}
	sink := stuckSink{Writer(io.Discard), make(chan []byte, 1), make(chan struct{})}
	failed := make(chan error, 1)
	go func() { failed <- in.Receive(t.Context(), sink) }()
	if err := out.Link().Out.Send(t.Context(), opData, []byte("these")); err != nil {
		t.Fatal(err)
	}
	b := <-sink.got
	out.Abort(errors.New("enough"))
	if err := <-failed; err == nil {
		t.Fatal("no error")
	}
	// A write that lasts keeps the memory, however long after the failure.
	time.Sleep(2 * grace)
	if s := h.Stats(); s.Memory-s.Free < Memory/2 || string(b) != "these" {
		t.Errorf("%d bytes are free of %d while %q is written", s.Free, s.Memory, b)
	}
	close(sink.release)
	for h.Stats().Free != h.Stats().Memory {
		if t.Context().Err() != nil {
			t.Fatal("the memory is kept")
		}
		time.Sleep(time.Millisecond)
	}
}
