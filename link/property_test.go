package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var (
	schedules = flag.Int("schedules", 300, "random schedules to run; a tenth as many of lives")
	firstSeed = flag.Uint64("seed", 1, "seed of the first one")
)

// each runs random schedules; -short runs fewer.
func each(t *testing.T, n int, run func(t *testing.T, seed uint64)) {
	if testing.Short() {
		n = (n + 9) / fixture.Fewer(10, 20)
	}
	for i := range n {
		seed := *firstSeed + uint64(i)
		fixture.Bubble(t, fmt.Sprintf("seed %d", seed), func(t *testing.T) { run(t, seed) })
	}
}

// content is what message k of a flow holds.
func content(rnd *rand.Rand, k uint64, most int) []byte {
	b := make([]byte, rnd.IntN(most+1))
	if len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, k)
	}
	for i := 8; i < len(b); i++ {
		b[i] = byte(k) + byte(i)*7
	}
	return b
}

// produce sends n messages, some of them in place.
func produce(ctx context.Context, p *Producer, seed uint64, n int, pause time.Duration) error {
	rnd, dice := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	_, size := p.Buffers()
	for k := range n {
		b := content(rnd, uint64(k), size)
		if pause > 0 && dice.IntN(20) == 0 {
			time.Sleep(time.Duration(dice.Int64N(int64(pause))))
		}
		if dice.IntN(2) == 0 {
			if err := p.Send(ctx, uint8(k), b); err != nil {
				return fmt.Errorf("message %d: %w", k, err)
			}
			continue
		}
		buf, err := p.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("message %d: %w", k, err)
		}
		copy(buf.Bytes, b)
		if err := p.Commit(buf, uint8(k), len(b)); err != nil {
			return fmt.Errorf("message %d: %w", k, err)
		}
	}
	return nil
}

// consume checks messages as they come and once more before they are released, several messages later,
// and returns how many there were.
func consume(ctx context.Context, c *Consumer, seed uint64, pause time.Duration) (k int, err error) {
	rnd, dice := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 3))
	n, size := c.Buffers()
	type held struct {
		m    Message
		want []byte
	}
	var holds []held
	let := func() error {
		h := holds[0]
		holds = holds[1:]
		if !bytes.Equal(h.m.Bytes, h.want) {
			return fmt.Errorf("a message of %d bytes was overwritten before it was released", len(h.want))
		}
		return c.Release(h.m)
	}
	for {
		m, err := c.Recv(ctx)
		if err != nil {
			for len(holds) > 0 {
				if bad := let(); bad != nil {
					return k, bad
				}
			}
			return k, err
		}
		want := content(rnd, uint64(k), size)
		if m.Opcode != uint8(k) || !bytes.Equal(m.Bytes, want) {
			return k, fmt.Errorf("message %d: opcode %d, %d bytes, want %d", k, m.Opcode, len(m.Bytes), len(want))
		}
		k++
		holds = append(holds, held{m, want})
		if pause > 0 && dice.IntN(20) == 0 {
			time.Sleep(time.Duration(dice.Int64N(int64(pause))))
		}
		for len(holds) == n || len(holds) > 0 && dice.IntN(2) == 0 {
			if bad := let(); bad != nil {
				return k, bad
			}
		}
	}
}

func randomLink(rnd *rand.Rand) simnet.Link {
	l := simnet.Link{Latency: time.Duration(rnd.Int64N(int64(3 * time.Millisecond)))}
	if rnd.IntN(3) > 0 {
		l.Loss, l.Duplicate, l.Reorder = rnd.Float64()*0.3, rnd.Float64()*0.2, rnd.Float64()*0.3
		l.Jitter = time.Duration(rnd.Int64N(int64(time.Millisecond)))
		l.ReorderBy = time.Duration(rnd.Int64N(int64(20 * time.Millisecond)))
	}
	return l
}

// TestPropertyFlows checks that under all faults every message arrives once, whole, in order, that no
// credit is lost or invented, that no buffer is overwritten, and that nothing is left.
func TestPropertyFlows(t *testing.T) {
	t.Parallel()
	each(t, *schedules, flows)
}

func flows(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	n := newNet(t, seed)
	one, two := simnet.Addr(1), simnet.Addr(2)
	n.sim.Link(one, two, randomLink(rnd))
	n.sim.Link(two, one, randomLink(rnd))
	a, b := n.host(1, &Config{Memory: 1 << 20}), n.host(2, &Config{Memory: 1 << 20})
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var all sync.WaitGroup
	var links []*Link
	for flow := range 1 + rnd.IntN(3) {
		shape := func(d Direction) *Options {
			return &Options{Directions: d, Buffers: 1 + rnd.IntN(9), Size: 1 + rnd.IntN(4000)}
		}
		d := Direction(1 + rnd.IntN(3))
		out, in := join(t, a, b, fmt.Sprint("flow", flow), shape(d), shape(Both))
		messages := 1 + rnd.IntN(300)
		slow, slower := time.Duration(rnd.Int64N(int64(30*time.Millisecond))), time.Duration(rnd.Int64N(int64(30*time.Millisecond)))
		way := seed<<8 | uint64(flow)
		run := func(from, to *Link, way uint64) {
			all.Go(func() {
				if err := produce(ctx, from.Out, way, messages, slow); err != nil {
					t.Errorf("flow %d: %v", flow, err)
				}
				if err := from.Out.CloseContext(ctx); err != nil {
					t.Errorf("flow %d: close: %v", flow, err)
				}
			})
			all.Go(func() {
				if k, err := consume(ctx, to.In, way, slower); k != messages || err != io.EOF {
					t.Errorf("flow %d: %d messages of %d: %v", flow, k, messages, err)
				}
			})
		}
		if d&Send != 0 {
			run(out, in, way<<1)
		}
		if d&Receive != 0 {
			run(in, out, way<<1|1)
		}
		links = append(links, out, in)
	}
	all.Wait()
	for _, l := range links {
		if err := l.CloseContext(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	time.Sleep(20 * time.Second)
	nothingLeft(t, a, b)
}

// TestPropertyLives has hosts come and go at any time. It checks that each call that waits is told,
// and that what was sent in one life is not received in another.
func TestPropertyLives(t *testing.T) {
	t.Parallel()
	each(t, (*schedules+9)/10, lives)
}

func lives(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 10))
	n := newNet(t, seed)
	one, two := simnet.Addr(1), simnet.Addr(2)
	n.sim.Link(one, two, randomLink(rnd))
	n.sim.Link(two, one, randomLink(rnd))
	cfg := func() *Config {
		return &Config{Memory: 1 << 20, Endpoint: dgrdma.Config{GiveUp: 2 * time.Second}}
	}
	b := n.host(2, cfg())
	hour, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var consumers sync.WaitGroup
	serve := func(b *Host) {
		port, err := b.Listen("lives", &Options{Buffers: 1 + rnd.IntN(9), Size: 8 + rnd.IntN(2000)})
		if err != nil {
			t.Fatal(err)
		}
		consumers.Go(func() {
			for {
				l, err := port.Accept(context.Background())
				if err != nil {
					return
				}
				consumers.Go(func() {
					way := binary.LittleEndian.Uint64(l.Private())
					_, err := consume(hour, l.In, way, time.Millisecond)
					var e *Error
					if err != io.EOF && !errors.As(err, &e) {
						t.Errorf("consumer: %v", err)
					}
					l.CloseContext(hour)
				})
			}
		})
	}
	serve(b)
	for life := range 4 {
		a := n.host(1, cfg())
		way := seed<<8 | uint64(life)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		l, err := dial(ctx, a, 2, "lives", &Options{Private: binary.LittleEndian.AppendUint64(nil, way)})
		cancel()
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		sent := make(chan error, 1)
		go func() {
			err := produce(hour, l.Out, way, 1_000_000, time.Millisecond)
			sent <- err
		}()
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
		switch rnd.IntN(4) {
		case 0: // this side ends and says nothing
			a.Close()
		case 1: // the other side ends so, and comes back
			b.Close()
			b = n.host(2, cfg())
			serve(b)
		case 2: // no frame passes for too long
			n.sim.Link(one, two, simnet.Link{Loss: 1})
			n.sim.Link(two, one, simnet.Link{Loss: 1})
			time.Sleep(10 * time.Second)
			n.sim.Link(one, two, simnet.Link{})
			n.sim.Link(two, one, simnet.Link{})
		case 3: // the link is closed early
			short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			l.CloseContext(short)
			cancel()
		}
		err = <-sent
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("life %d: the producer was told %v", life, err)
		}
		l.CloseContext(hour)
		a.Close()
	}
	b.Close()
	consumers.Wait()
}
