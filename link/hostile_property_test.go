package link

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestPropertyHostilePeer checks that an honest pair loses, doubles and reorders nothing while another
// peer does whatever it likes. The hostile peer's links deliver what it wrote and nothing else, or
// fail. When it is gone, nothing of it is left.
func TestPropertyHostilePeer(t *testing.T) {
	each(t, (*schedules+9)/10, hostileWorld)
}

// mischief is the byte of all of a hostile peer's data, and of no other data.
const mischief = 'S'

// hostileRoom is enough memory for all links that a hostile peer is given in a world. Which peers a
// host serves, and with how many links, is for its program to say.
const hostileRoom = 8 << 20

func hostileWorld(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 20))
	n := newNet(t, seed)
	n.sim.Link(simnet.Addr(1), simnet.Addr(2), randomLink(rnd))
	n.sim.Link(simnet.Addr(2), simnet.Addr(1), randomLink(rnd))
	a, b := n.host(1, &Config{Memory: 1 << 20}), n.host(2, &Config{Memory: hostileRoom})
	hour, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	s := n.fakePeer(9, b)
	shape := &Options{Directions: Both, Buffers: 1 + rnd.IntN(9), Size: 1 + rnd.IntN(2000)}
	made := b.serve(t, "port", shape)
	var all sync.WaitGroup
	var before runtime.MemStats
	runtime.ReadMemStats(&before)

	// The honest pair begins and ends links.
	ended := make(chan struct{})
	honest := make(chan *Link)
	all.Go(func() {
		defer close(ended)
		for flow := range 3 {
			way := seed<<8 | uint64(flow)<<1
			out, err := dial(hour, a, 2, "port", &Options{Directions: Both, Buffers: 3, Size: 500})
			if err != nil {
				t.Errorf("flow %d: %v", flow, err)
				return
			}
			both(t, &all, hour, out, <-honest, way)
		}
	})
	// The server answers all links.
	all.Go(func() {
		for {
			select {
			case l := <-made:
				if l.peer.conn.Name().ID == 1 {
					honest <- l
					continue
				}
				all.Go(func() { suffer(t, hour, l) })
			case <-ended:
				return
			}
		}
	})
	x := villain{fakePeer: s, rnd: rnd}
	for {
		select {
		case <-ended:
		default:
			x.act()
			continue
		}
		break
	}
	s.mu.Lock()
	s.mute = true
	s.mu.Unlock()
	all.Wait()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d bytes more are in use", grown)
	}
	time.Sleep(3 * b.ep.GiveUp())
	for len(made) > 0 {
		(<-made).Close()
	}
	time.Sleep(2 * b.ep.GiveUp())
	nothingLeft(t, a, b)
}

// both moves messages in both directions, checks all of them, and closes.
func both(t *testing.T, all *sync.WaitGroup, ctx context.Context, out, in *Link, way uint64) {
	const messages = 60
	var flows sync.WaitGroup
	for i, l := range [][2]*Link{{out, in}, {in, out}} {
		flows.Go(func() {
			if err := produce(ctx, l[0].Out, way|uint64(i), messages, 5*time.Millisecond); err != nil {
				t.Errorf("the honest pair: %v", err)
			}
			l[0].Out.CloseContext(ctx)
		})
		flows.Go(func() {
			if k, err := consume(ctx, l[1].In, way|uint64(i), 5*time.Millisecond); k != messages || err != io.EOF {
				t.Errorf("the honest pair: %d of %d messages: %v", k, messages, err)
			}
		})
	}
	flows.Wait()
	out.CloseContext(ctx)
	in.CloseContext(ctx)
}

// suffer serves a link of the hostile peer, and checks that every byte that it delivers is that
// peer's.
func suffer(t *testing.T, ctx context.Context, l *Link) {
	if l.Out != nil {
		for range 5 {
			if b, ok := l.Out.TryAcquire(); ok {
				l.Out.Commit(b, 1, min(len(b.Bytes), 10))
			}
		}
	}
	if l.In != nil {
		for m, err := range l.In.Messages(ctx) {
			if err == nil && len(bytes.Trim(m.Bytes, string(rune(mischief)))) > 0 {
				t.Errorf("it was delivered %q", m.Bytes)
			}
		}
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	l.CloseContext(short)
}

// villain is a fake peer that does anything.
type villain struct {
	*fakePeer
	rnd   *rand.Rand
	from  uint32   // of the links that it asked for
	links []letter // that it was given
}

// one returns any of the given values.
func one[T any](x *villain, of ...T) T { return of[x.rnd.IntN(len(of))] }

func (x *villain) number() uint32 {
	return one(x, 0, 1, 3, 4, 63, 64, 65, 1024, 1<<16, 1<<21-1, 1<<31, 1<<32-1, x.rnd.Uint32(), x.rnd.Uint32N(1<<20))
}

// place returns an address of the villain's links, of other peers', or any.
func (x *villain) place() uint32 {
	if len(x.links) > 0 && x.rnd.IntN(4) > 0 {
		h := one(x, x.links...).out
		i := x.rnd.Uint32N(h.Buffers + 1)
		return one(x, h.Data+i*h.Pitch, h.Flags+i*4, h.Data+i*h.Pitch+x.rnd.Uint32N(h.Size+1), h.Flags+i*4+1, h.Data-1)
	}
	bell := letterBells + 4*x.rnd.Uint32N(letterUnits)
	if x.rnd.IntN(50) > 0 { // else its own letters may be out of order from now on
		bell += 1 + x.rnd.Uint32N(3)
	}
	return one(x, x.number(), reserved+128*x.rnd.Uint32N(1<<13), letterBox+x.rnd.Uint32N(dgrdma.MailSize-letterBox), bell)
}

func (x *villain) half() half {
	return half{x.number(), x.number(), x.number(), x.number(), x.number(), x.number(), x.number()}
}

func (x *villain) act() {
	data := bytes.Repeat([]byte{mischief}, one(x, 0, 1, 4, 8, x.rnd.IntN(2100)))
	switch x.rnd.IntN(12) {
	case 0: // ask for a link, by a good letter or a bad one
		x.from++
		out, back := half{Credit: 1 << 15}, buffers(4, 100)
		if x.rnd.IntN(3) == 0 {
			out, back = x.half(), x.half()
		}
		x.letter(letter{kind: letterOpen, directions: one(x, toListener, toListener, toListener|toDialer, toDialer, 8), from: x.from, attempt: uint64(x.from), name: "port", out: out, back: back})
	case 1, 2:
		for _, l := range x.mail() {
			if l.kind == letterAccept && l.out.Buffers > 0 {
				x.links = append(x.links, l)
			}
		}
	case 3, 4, 5: // a good message
		if len(x.links) > 0 {
			h := one(x, x.links...).out
			i := x.rnd.Uint32N(h.Buffers)
			data = data[:min(len(data), int(h.Size))]
			x.frame(x.write(h.Data+i*h.Pitch, data, h.Flags+4*i, uint32(PackFlag(len(data), 3, x.rnd.IntN(50) == 0))))
		}
	case 6, 7: // a bad transaction
		count := uint16(1 + x.rnd.IntN(4))
		word, value := x.place(), one(x, uint32(PackFlag(len(data), 3, false)), uint32(PackFlag(x.rnd.IntN(2100), 3, false)), x.number())
		for i := range count {
			x.frame(x.message(0, count, i+1, x.place(), data, word, value))
		}
		x.txn++
	case 8:
		x.frame(x.word(x.place(), one(x, x.number(), uint32(PackFlag(x.rnd.IntN(2100), 3, false)))), x.write(x.place(), data, one(x, x.place(), 1<<32-1), 1<<32-1))
	case 9: // a letter about any link
		l := letter{kind: letterKind(1 + x.rnd.IntN(4)), from: x.number(), to: x.number(), attempt: uint64(x.number()), out: x.half(), back: x.half(), text: "why"}
		if len(x.links) > 0 && x.rnd.IntN(2) == 0 {
			own := one(x, x.links...)
			l.to, l.attempt = own.from, own.attempt
		}
		x.letter(l)
	case 10: // noise
		b := make([]byte, x.rnd.IntN(200))
		for i := range b {
			b[i] = byte(x.rnd.Uint32())
		}
		if len(b) > frame.HeaderSize { // so that it is parsed
			(&frame.Header{Dst: x.to.ep.ID(), Src: x.id, Seq: frame.Seq(x.rnd.Uint32()), Flags: byte(x.rnd.IntN(2))}).Put(b)
		}
		x.raw(b)
	case 11:
		x.wait(time.Duration(x.rnd.IntN(10)) * time.Millisecond)
	}
	if len(x.links) > 50 {
		x.links = x.links[1:]
	}
}
