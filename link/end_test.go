package link

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestMemoryWaitsForTheBatch checks that no other link has the memory of a link that ends within a
// frame before the end of the batch: data that was checked for it may still be placed.
func TestMemoryWaitsForTheBatch(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 2, Size: 64}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		var ends *Link
		var before, during uint64
		handled := h.serve(t, "handled", &Options{Buffers: 2, Size: 8, Handle: func(*Link, Message) {
			before = h.Stats().Free
			ends.Finish()
			during = h.Stats().Free
		}})
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		other := s.dial(2, "handled", toListener, half{Credit: 1 << 15}, half{})
		ends = <-made
		<-handled
		flag := uint32(PackFlag(4, 0, false))
		s.frame(s.write(yes.out.Data, []byte("data"), yes.out.Flags, flag),
			s.write(other.out.Data, []byte("data"), other.out.Flags, flag))
		s.wait(time.Millisecond)
		if after := h.Stats().Free; during != before || after <= before {
			t.Errorf("%d bytes were free before a link's end, %d in the same frame, %d after the batch", before, during, after)
		}
	})
}

// TestAllHeld checks that a consumer that holds all its buffers is not handed the first one again.
func TestAllHeld(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		for i := range uint32(2) {
			s.frame(s.write(yes.out.Data+i*yes.out.Pitch, []byte("data"), yes.out.Flags+4*i, uint32(PackFlag(4, uint8(i), false))))
		}
		for i := range uint8(2) {
			if m, err := in.In.Recv(soon(t)); err != nil || m.Opcode != i {
				t.Fatal(m, err)
			}
		}
		if m, err := in.In.Recv(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("message %d, %v", m.Number, err)
		}
	})
}

// TestEndBeforeItIsRead checks that a peer that closes when all up to end of file has arrived closed
// in time, however much of it is not received yet.
func TestEndBeforeItIsRead(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		for i, f := range []Flag{PackFlag(4, 0, false), PackFlag(4, 0, false), PackFlag(0, 0, true)} {
			b := make([]byte, f.Length())
			s.frame(s.write(yes.out.Data+uint32(i)*yes.out.Pitch, b, yes.out.Flags+4*uint32(i), uint32(f)))
		}
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if in.Err() != nil {
			t.Errorf("closed too early: %v", in.Err())
		}
		n := 0
		for _, err := range in.In.Messages(soon(t)) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if n != 2 {
			t.Errorf("%d messages, want 2", n)
		}
	})
}

// TestRefusalKeepsTheConnection checks that the connection of a peer that refuses stays for the next
// link, because it is a link host. A peer that never wrote a letter may be of another kind. Its
// connection is abandoned when the heartbeat finds that it has been told that it is asked for nothing
// any more.
func TestRefusalKeepsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		b.ep.AcceptAny(true)
		if _, err := dial(soon(t), a, 2, "none", nil); !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		if conns := a.ep.Conns(); len(conns) != 1 || conns[0].Err() != nil {
			t.Errorf("after a refusal: %v", conns)
		}
		s := n.fakePeer(9, a)
		if _, err := dial(soon(t), a, 9, "port", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if got := s.mail(); len(got) != 2 || got[0].kind != letterOpen || got[1].kind != letterClose || got[1].attempt != got[0].attempt || got[1].to != 0 {
			t.Errorf("it was told %+v, want that the link is asked for no more", got)
		}
		s.wait(a.ep.GiveUp())
		for _, c := range a.ep.Conns() {
			if c.Name().ID == s.id && c.Err() == nil {
				t.Error("a peer that never answered is not left")
			}
		}
	})
}

// TestReaderHoldsTheMemory checks that the memory of a link that ends while a goroutine copies from it
// is given back when that is done, though it fails.
func TestReaderHoldsTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, nil, &Options{Buffers: 2, Size: 8})
		if err := out.Out.Send(soon(t), 0, []byte("data")); err != nil {
			t.Fatal(err)
		}
		full := errors.New("full")
		_, err := in.In.WriteTo(writer(func([]byte) (int, error) {
			in.Close()
			out.Close()
			time.Sleep(time.Second)
			if s := b.Stats(); len(s.Links) != 1 || s.Free == s.Memory {
				t.Error("the memory was given back while it is read")
			}
			return 0, full
		}))
		if !errors.Is(err, full) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestEndWaitsForOneWord checks that a link's end waits for one word that is in flight.
func TestEndWaitsForOneWord(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		l := <-made
		s.setMute(true)
		s.frame(s.write(yes.out.Data, []byte("x"), yes.out.Flags, uint32(PackFlag(1, 0, false))))
		m, err := l.In.Recv(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		l.In.Release(m)
		l.Close()
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if st := h.Stats(); len(st.Links) != 1 || len(s.mail()) != 0 {
			t.Error("the link is over while its word is under way")
		}
		s.setMute(false)
		s.wait(time.Second)
		nothingLeft(t, h)
	})
}

// TestFirstReasonCounts checks that of two reasons to end a link the peer is told the first, however
// late it is told.
func TestFirstReasonCounts(t *testing.T) {
	withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		s.dial(1, "port", toDialer, half{}, buffers(4, 8))
		l := <-made
		s.setMute(true)
		if err := l.Out.Send(soon(t), 0, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		for _, why := range []string{"first", "second"} {
			if err := l.Abort(ctx, why); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		s.setMute(false)
		s.wait(time.Second)
		if got := s.mail(); len(got) != 1 || got[0].kind != letterClose || got[0].text != "first" {
			t.Errorf("%+v", got)
		}
	})
}

// TestEndOfOneWay checks that a peer that sent all up to end of file and closed takes nothing more.
// Senders are told so, by the link's own error.
func TestEndOfOneWay(t *testing.T) {
	withFakePeer(t, &Options{Directions: Both, Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener|toDialer, half{Credit: 1 << 15}, buffers(4, 8))
		l := <-made
		s.frame(s.word(yes.out.Flags, uint32(PackFlag(0, 0, true))))
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if _, err := l.In.Recv(soon(t)); err != io.EOF {
			t.Errorf("receiving: %v", err)
		}
		const want = `link: port "port" of peer 9 at 02:00:00:00:00:09: the peer closed the link before the end of file`
		if err := l.Out.Send(soon(t), 0, nil); !errors.Is(err, ErrPeerClosed) || err.Error() != want {
			t.Errorf("sending: %v", err)
		}
	})
}

// TestEndOfALifeBefore checks that no letter is sent about the end of a link whose peer began a new
// life, so that the end does not wait for that life.
func TestEndOfALifeBefore(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		l := <-made
		s.restart()
		s.setMute(true)
		p := l.peer
		p.send(p.conn.Life(), letter{kind: letterAccept, to: 1})
		if err := l.Abort(soon(t), "enough"); err != nil || p.channel.Waiting() != 1 {
			t.Errorf("%v; %d letters wait", err, p.channel.Waiting())
		}
		s.wait(time.Millisecond)
		nothingLeft(t, h)
	})
}

// TestPeerDown checks that a link hears that its peer is dead when the connection does, though no
// goroutine waits for anything.
func TestPeerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, _, out, _ := pair(t, n, nil, nil)
		n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1})
		<-out.Peer().Done()
		synctest.Wait()
		select {
		case <-out.Done():
			if err := out.Err(); !errors.Is(err, dgrdma.ErrPeerDown) {
				t.Error(err)
			}
		default:
			t.Error("the link is as before")
		}
		out.Close()
		nothingLeft(t, a)
	})
}

// TestReset checks that calls that wait on a connection that the program resets are told so, and that
// nothing is kept.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, b, _, in := pair(t, n, nil, nil)
		time.AfterFunc(time.Second, func() { in.Peer().Reset(0) })
		ctx, cancel := context.WithTimeout(t.Context(), b.ep.GiveUp())
		defer cancel()
		if _, err := in.In.Recv(ctx); !errors.Is(err, dgrdma.ErrReset) {
			t.Error(err)
		}
		in.Close()
		nothingLeft(t, b)
	})
}

// TestLateToTheEnd checks that a call that notices the end of a connection when there is a new life is
// told that it is another one.
func TestLateToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, _, in := pair(t, newNet(t, 1), nil, nil)
		in.connectionLost()
		if _, err := in.In.Recv(soon(t)); !errors.Is(err, dgrdma.ErrReset) {
			t.Error(err)
		}
		in.Close()
		nothingLeft(t, b)
	})
}

// TestAbortPolls checks that a host without goroutines polls its endpoint until the peer is told.
func TestAbortPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 0)
		a, b := n.host(1, &Config{Endpoint: dgrdma.Config{Manual: true}}), n.host(2, nil)
		out, in := join(t, a, b, "port", nil, nil)
		if err := out.Abort(soon(t), "enough"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := reasonOf(in.Err()); got != "enough" {
			t.Errorf("the peer was told %q", got)
		}
	})
}

// TestOpcodeOfWrites checks that what is written has the opcode of the options, whichever side makes
// the link.
func TestOpcodeOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := func(code uint8) *Options { return &Options{Directions: Both, Buffers: 4, Size: 8, Opcode: code} }
		_, _, out, in := pair(t, newNet(t, 1), both(7), both(9))
		for _, c := range []struct {
			from, to *Link
			want     uint8
		}{{out, in, 7}, {in, out, 9}} {
			if _, err := c.from.Out.Write([]byte("data")); err != nil {
				t.Fatal(err)
			}
			if m, err := c.to.In.Recv(soon(t)); err != nil || m.Opcode != c.want {
				t.Errorf("%+v, %v", m, err)
			}
		}
	})
}

// TestNothingAfterClose checks that what the application does with messages and buffers of a link that
// it closed reaches no other link.
func TestNothingAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, &Options{Directions: Both, Buffers: 4, Size: 10}, &Options{Directions: Both, Buffers: 4, Size: 10})
		ctx := context.Background()
		for range 2 {
			if err := out.Out.Send(ctx, 0, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		m, err := in.In.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		buffer, err := in.Out.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		before := b.ep.Stats().TransactionsDone
		synctest.Wait()
		in.In.Release(m)
		if err := in.Out.Commit(buffer, 0, 1); err == nil {
			t.Error("a buffer of a closed link was committed")
		}
		if _, err := in.In.Recv(ctx); !errors.Is(err, ErrClosed) {
			t.Errorf("received from a closed link: %v", err)
		}
		time.Sleep(time.Second)
		if got := b.ep.Stats().TransactionsDone; got > before+1 { // the letter of the end
			t.Errorf("%d transactions after Close", got-before)
		}
		out.Close()
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestConnectionClosed checks that links end with their connection, whichever side closes it.
func TestConnectionClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, nil, &Options{Buffers: 2, Size: 10})
		ended := make(chan error)
		go func() {
			var err error
			for err == nil {
				_, err = in.In.Recv(context.Background())
			}
			ended <- err
		}()
		go func() {
			var err error
			for err == nil {
				err = out.Out.Send(context.Background(), 0, nil)
			}
			ended <- err
		}()
		synctest.Wait()
		out.Peer().Close()
		in.Peer().Close()
		for range 2 {
			// The side that closes last may have heard of the other one before.
			if err := <-ended; !errors.Is(err, ErrClosed) && !errors.Is(err, dgrdma.ErrPeerClosed) {
				t.Error(err)
			}
		}
		out.Close()
		in.Close()
		synctest.Wait()
		nothingLeft(t, a, b)
	})
}
