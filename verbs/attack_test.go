package verbs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// victim is a host that grants some memory to whoever connects, while a peer that does no harm works.
type victim struct {
	t        *testing.T
	host     *verbs.Host
	listener *verbs.Listener
	options  *verbs.Options
	memory   []byte
	region   *verbs.Region // the middle third of memory
	pairs    chan *verbs.QueuePair
	innocent *verbs.QueuePair
	worked   chan int
	stop     context.CancelFunc
}

const third = 64 << 10

func newVictim(t *testing.T, o *verbs.Options) *victim {
	t.Helper()
	v := &victim{t: t, options: o, memory: pattern(1, 3*third), pairs: make(chan *verbs.QueuePair, 100), worked: make(chan int)}
	v.host, v.listener = listen(t)
	var err error
	if v.region, err = v.host.Register(v.memory[third:2*third:2*third], verbs.RemoteRead|verbs.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	own, err := v.host.Register(make([]byte, 4096), verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	v.stop = stop
	go func() {
		for {
			r, err := v.listener.Accept(ctx)
			if err != nil {
				return
			}
			if q, err := r.Accept(ctx, v.options); err == nil {
				v.pairs <- q
			}
		}
	}()
	peer, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	if v.innocent, err = peer.Dial(ctx, fmt.Sprint("tcp:", v.listener.Addr()), nil); err != nil {
		t.Fatal(err)
	}
	<-v.pairs
	go v.work(ctx, own.Key())
	return v
}

// work is what the innocent peer does until it is told to end, and once more: the attack is over then, and it gets on.
func (v *victim) work(ctx context.Context, k verbs.Key) {
	rounds := 0
	defer func() { v.worked <- rounds }()
	got := make([]byte, 4096)
	for over := false; !over; rounds++ {
		over = ctx.Err() != nil
		want := pattern(rounds, 4096)
		if err := errors.Join(v.innocent.Write(context.Background(), k, 0, want), v.innocent.Read(context.Background(), got, k, 0)); err != nil {
			v.t.Errorf("a peer that does no harm: %v", err)
			return
		}
		if !bytes.Equal(got, want) {
			v.t.Error("a peer that does no harm reads something else than it wrote")
			return
		}
	}
}

// over looks at what must be as it was.
func (v *victim) over() {
	v.t.Helper()
	v.stop()
	if n := <-v.worked; n == 0 {
		v.t.Error("a peer that does no harm did not get on")
	}
	was := pattern(1, 3*third)
	if !bytes.Equal(v.memory[:third], was[:third]) || !bytes.Equal(v.memory[2*third:], was[2*third:]) {
		v.t.Error("memory that nobody granted has changed")
	}
}

// attacker is a peer that sends what it likes, in good frames.
type attacker struct {
	nc    net.Conn
	conn  *mpa.Conn
	queue []ddp.Message
}

func (a *attacker) Begin()   {}
func (a *attacker) End()     {}
func (a *attacker) Sent(int) {}
func (a *attacker) Next(m *ddp.Message) bool {
	if len(a.queue) == 0 {
		return false
	}
	*m, a.queue = a.queue[0], a.queue[1:]
	return true
}

func (v *victim) attack(o *mpa.Options) *attacker {
	v.t.Helper()
	a := &attacker{nc: dial(v.t, v.listener)}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if a.conn, err = mpa.Initiate(ctx, a.nc, o); err != nil {
		v.t.Fatal(err)
	}
	return a
}

// send sends messages, and gives up when the other side does not take them.
func (a *attacker) send(messages ...ddp.Message) {
	a.queue = messages
	a.nc.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for {
		p, err := a.conn.Send(a)
		if err == nil && p == mpa.Blocked {
			err = a.conn.Flush(a)
		}
		if err != nil || p == mpa.Idle {
			return
		}
	}
}

func tagged(control byte, stag uint32, to uint64, data []byte) ddp.Message {
	return ddp.Message{Header: ddp.Header{Tagged: true, Control: control, STag: stag, TO: to}, Length: uint32(len(data)), Data: []ddp.Span{{Bytes: data}}}
}

func untagged(control byte, qn, msn uint32, data []byte) ddp.Message {
	return ddp.Message{Header: ddp.Header{Control: control, QN: qn, MSN: msn}, Length: uint32(len(data)), Data: []ddp.Span{{Bytes: data}}}
}

// ended waits for the end of the attacker's queue pair at the victim, and returns why it was.
func (v *victim) ended() error {
	v.t.Helper()
	q := <-v.pairs
	select {
	case <-q.Done():
		return q.Err()
	case <-time.After(30 * time.Second):
		v.t.Fatal("the attacker's queue pair goes on")
		return nil
	}
}

// Attacks R1 and R5 (SECURITY.md): what is not granted to a peer is not touched, and its connection ends with the
// fault that it made.
func TestAttackMemory(t *testing.T) {
	other := func(v *victim) uint32 { // a region of another domain
		r, err := v.host.NewDomain().Register(v.memory[:third:third], verbs.RemoteWrite, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.STag()
	}
	for _, c := range []struct {
		name string
		of   func(v *victim) ddp.Message
		want ddp.Fault
	}{
		{"behind the end", func(v *victim) ddp.Message {
			return tagged(0x40, v.region.STag(), v.region.Base()+third-1, make([]byte, 2))
		}, ddp.TaggedBounds},
		{"over the end, in many segments", func(v *victim) ddp.Message {
			return tagged(0x40, v.region.STag(), v.region.Base()+third/2, make([]byte, third))
		}, ddp.TaggedBounds},
		{"an offset that wraps", func(v *victim) ddp.Message { return tagged(0x40, v.region.STag(), 1<<64-1, make([]byte, 2)) }, ddp.TaggedWrap},
		{"another key", func(v *victim) ddp.Message { return tagged(0x40, v.region.STag()+1, v.region.Base(), make([]byte, 2)) }, ddp.TaggedSTag},
		{"another domain", func(v *victim) ddp.Message { return tagged(0x40, other(v), 0, make([]byte, 2)) }, ddp.TaggedAssociation},
		{"withdrawn", func(v *victim) ddp.Message {
			v.region.Invalidate()
			return tagged(0x40, v.region.STag(), v.region.Base(), make([]byte, 2))
		}, ddp.TaggedSTag},
		{"an answer that nobody asked for", func(v *victim) ddp.Message { return tagged(0x42, 0x42, 0, make([]byte, 2)) }, ddp.OperationOpcode},
		{"a Send that is too long", func(*victim) ddp.Message { return untagged(0x43, 0, 1, make([]byte, 5000)) }, ddp.UntaggedTooLong},
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,plain=%v", c.name, plain), func(t *testing.T) {
				v := newVictim(t, nil)
				buffer := bytes.Repeat([]byte{0xee}, 4096)
				v.options = &verbs.Options{NoCRC: plain, Posted: []verbs.Receive{{Data: buffer[:2048:2048]}}}
				a := v.attack(&mpa.Options{Strict: true, NoCRC: plain})
				a.send(c.of(v))
				a.nc.Close()
				var te *verbs.TerminateError
				if err := v.ended(); !errors.As(err, &te) || te.Remote || te.Fault != c.want {
					t.Errorf("%v, want %v", err, c.want)
				}
				if !bytes.Equal(buffer[2048:], bytes.Repeat([]byte{0xee}, 2048)) {
					t.Error("something was written behind the receive")
				}
				v.over()
			})
		}
	}
}

// Attack R3: each guess of an STag costs a connection, and of 2^32 a few are any good.
func TestAttackGuess(t *testing.T) {
	v := newVictim(t, nil)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 100 {
		a := v.attack(nil)
		a.send(tagged(0x40, rng.Uint32(), 0, []byte{1}))
		a.nc.Close()
		if err := v.ended(); !errors.Is(err, ddp.TaggedSTag) && !errors.Is(err, ddp.TaggedBounds) {
			t.Errorf("a guess ended the connection with %v", err)
		}
	}
	v.over()
}

// readRequest asks for all of a region.
func readRequest(msn uint32, k verbs.Key) ddp.Message {
	b := binary.BigEndian.AppendUint32(nil, 1)
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint32(b, k.Length)
	b = binary.BigEndian.AppendUint32(b, k.STag)
	return untagged(0x41, 1, msn, binary.BigEndian.AppendUint64(b, k.Offset))
}

// Attack R4: who asks for more than was agreed on ends its connection; who asks for as much, again and again, and
// takes no answers, has this side keep no more than it agreed to.
func TestAttackReads(t *testing.T) {
	for _, most := range []bool{false, true} {
		t.Run(fmt.Sprintf("within=%v", most), func(t *testing.T) {
			v := newVictim(t, nil)
			v.options = &verbs.Options{IRD: 8}
			a := v.attack(&mpa.Options{ORD: 8})
			q := <-v.pairs
			before := live()
			n := 8
			if !most {
				n = 100_000
			}
			var flood []ddp.Message
			for i := range n {
				flood = append(flood, readRequest(uint32(i+1), v.region.Key()))
			}
			a.send(flood...)
			flood, a.queue = nil, nil
			if most {
				// Each answer is longer than what it was asked with, and nobody takes it.
				if grown := cost(before, 1, 16<<20); grown > 16<<20 {
					t.Errorf("memory grew by %d", grown)
				}
				q.Abort()
			} else {
				a.nc.SetReadDeadline(time.Now().Add(10 * time.Second))
				for b := make([]byte, 1<<16); ; {
					if _, err := a.nc.Read(b); err != nil {
						break
					}
				}
				<-q.Done()
				var te *verbs.TerminateError
				if !errors.As(q.Err(), &te) || te.Remote {
					t.Errorf("ended with %v", q.Err())
				}
			}
			v.over()
		})
	}
}

// live is how much memory is in use. A sync.Pool keeps what was put into it for two collections, and that is no connection's.
func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// cost returns how much memory each of n connections keeps that was not in use before. What a goroutine still works with counts until
// the goroutine has run, so it looks until a connection keeps no more than it may.
func cost(before uint64, n, most int64) int64 {
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if each := (int64(live()) - int64(before)) / n; each <= most || time.Now().After(until) {
			return each
		}
	}
}

// Attack R2: who stops in the middle of a frame, or of a message, holds nobody but its own connection:
// the memory that it was writing to can be withdrawn, and the queue pair closed.
func TestAttackStop(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			v := newVictim(t, nil)
			v.options = &verbs.Options{NoCRC: plain}
			a := v.attack(&mpa.Options{NoCRC: plain})
			q := <-v.pairs
			frame := binary.BigEndian.AppendUint16(nil, 14+third-1000)
			frame = append(frame, 0x81, 0x40)
			frame = binary.BigEndian.AppendUint32(frame, v.region.STag())
			frame = binary.BigEndian.AppendUint64(frame, v.region.Base())
			frame = append(frame, pattern(2, third/2)...)
			if _, err := a.nc.Write(frame); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // without CRC half of the frame is in its place by then
			invalidated := make(chan struct{})
			go func() { v.region.Invalidate(); close(invalidated) }()
			select {
			case <-invalidated:
			case <-time.After(10 * time.Second):
				t.Fatal("memory cannot be withdrawn while a frame is on its way there")
			}
			was := bytes.Clone(v.memory)
			a.nc.Write(pattern(3, 1000))
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			q.Shutdown(ctx)
			if !bytes.Equal(v.memory, was) {
				t.Error("memory has changed that was withdrawn")
			}
			v.over()
		})
	}
}

// Attack R6: a Terminate of any content ends its connection, and nothing else.
func TestAttackTerminate(t *testing.T) {
	v := newVictim(t, nil)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 100 {
		b := make([]byte, rng.IntN(80))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		a := v.attack(nil)
		a.send(untagged(0x47, 2, 1, b))
		a.nc.Close()
		var te *verbs.TerminateError
		if err := v.ended(); !errors.As(err, &te) {
			t.Errorf("%x ended the connection with %v", b, err)
		}
	}
	v.over()
}

// Attack R9: many connections that are accepted, and then say nothing, or half a frame.
func TestAttackIdle(t *testing.T) {
	v := newVictim(t, &verbs.Options{IRD: 1, ORD: 1, Sends: 4, Receives: 4})
	before := live()
	const n = 200
	var all sync.WaitGroup
	for i := range n {
		a := v.attack(nil)
		q := <-v.pairs
		if i%2 == 0 {
			a.nc.Write([]byte{0xff, 0xff, 0x81})
		}
		all.Go(func() { <-q.Done() })
	}
	if each := cost(before, n, 200<<10); each > 200<<10 {
		t.Errorf("a connection costs %d", each)
	}
	v.over()
	v.host.Close()
	all.Wait()
}

// TestAttackUntaken checks that a connection whose peer asks for much and takes no answers keeps one batch of frames, however much was asked for.
func TestAttackUntaken(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			v := newVictim(t, &verbs.Options{NoCRC: plain, Sends: 4, Receives: 4})
			large, err := v.host.Register(make([]byte, 16<<20), verbs.RemoteRead) // more than sockets have room for
			if err != nil {
				t.Fatal(err)
			}
			before := live()
			const n, asked = 20, 16
			var all sync.WaitGroup
			for range n {
				a := v.attack(&mpa.Options{NoCRC: plain, ORD: asked})
				q := <-v.pairs
				var reads []ddp.Message
				for i := range asked {
					reads = append(reads, readRequest(uint32(i+1), large.Key()))
				}
				a.send(reads...)
				for until := time.Now().Add(10 * time.Second); q.Stats().Unserved < asked-1 && time.Now().Before(until); time.Sleep(time.Millisecond) {
				}
				if got := q.Stats().Unserved; got < asked-1 { // the first is under way
					t.Errorf("%d of %d Reads wait", got, asked)
				}
				all.Go(func() { <-q.Done() })
			}
			const most = 320 << 10
			if each := cost(before, n, most); each > most {
				t.Errorf("a connection costs %d", each)
			} else {
				t.Logf("a connection costs %d", each)
			}
			v.over()
			v.host.Close()
			all.Wait()
		})
	}
}
