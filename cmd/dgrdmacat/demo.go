package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

const (
	demoBlock = 1 << 20 // bytes per transaction
	demoDepth = 8       // transactions posted at once
	demoData  = 4096    // address of the data; completion words lie before it
)

var demoCommand = command{
	name: "demo", summary: "move data between two endpoints in this process, and verify it",
	about: `Two endpoints in this process move data by one-sided writes, over UDP on the
loopback interface. The receiver's memory is compared with what was sent. With
--lossy they do it over a simulated network that loses, duplicates and reorders. What
takes longer than 5 s says every 5 s how far it is, on standard error.`,
	flags: func(fs *flag.FlagSet) action {
		size := &sizeFlag{value: 64 * demoBlock}
		fs.Var(size, "size", "`bytes` to move, such as 64M: whole MiB, 1M to 1G")
		lossy := fs.Bool("lossy", false, "over a simulated network; the flags below belong to it")
		// Where all are late, none is overtaken.
		loss, duplicate, reorder := percent("5", 40), percent("1", 100), percent("2", 90)
		fs.Var(&loss, "loss", "lose `percent` of the datagrams, each way, at random, such as 1 or 0.5%, at most 40")
		fs.Var(&duplicate, "duplicate", "`percent` of the datagrams that arrive twice, at most 100")
		fs.Var(&reorder, "reorder", "`percent` of the datagrams that are overtaken, at most 90")
		seed := fs.Uint64("seed", 1, "seed of the network's faults")
		return func(ctx context.Context, std *stdio, _ []string) error {
			stray := given(fs, "loss", "duplicate", "reorder", "seed")
			switch {
			case size.value < demoBlock || size.value > 1024*demoBlock || size.value%demoBlock != 0:
				return badUsage("--size %v: need 1M to 1G, whole MiB", size)
			case !*lossy && stray != "":
				return badUsage("%s belongs to --lossy", stray)
			}
			blocks := int(size.value / demoBlock)
			if !*lossy {
				return demoOverUDP(ctx, blocks, std)
			}
			return demoOverSimnet(ctx, blocks, simnet.Link{
				Latency: 100 * time.Microsecond, Loss: loss.share, Duplicate: duplicate.share, Reorder: reorder.share,
				ReorderBy: 300 * time.Microsecond,
			}, *seed, std)
		}
	},
}

func demoOverUDP(ctx context.Context, blocks int, std *stdio) error {
	memory, err := dgrdma.NewRegion(demoData + blocks*demoBlock)
	if err != nil {
		return err
	}
	receiver, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{Memory: memory, AcceptAny: true})
	if err != nil {
		return err
	}
	defer receiver.Close()
	sender, err := dgrdma.Open("udp:127.0.0.1", nil)
	if err != nil {
		return err
	}
	defer sender.Close()
	conn, err := sender.Dial(receiver.URL())
	if err != nil {
		return err
	}
	d := demonstration{conn: conn, memory: memory, receiver: receiver, blocks: blocks}
	return d.run(ctx, std, 1, func(w io.Writer) {
		fmt.Fprintf(w, "network     UDP on the loopback interface, from %v to %v\n", sender.LocalAddr(), receiver.LocalAddr())
	})
}

func demoOverSimnet(ctx context.Context, blocks int, link simnet.Link, seed uint64, std *stdio) error {
	from, to := simnet.Addr(1), simnet.Addr(2)
	network := simnet.New(seed)
	defer network.Close()
	network.Link(from, to, link)
	network.Link(to, from, link)

	memory, err := dgrdma.NewRegion(demoData + blocks*demoBlock)
	if err != nil {
		return err
	}
	// Nobody shares a simulated network, and losses that people ask for are no congestion.
	sender, err := dgrdma.New(network.Attach(from, simnet.Config{}), &dgrdma.Config{ID: 1, Congestion: dgrdma.CongestionAdaptive})
	if err != nil {
		return err
	}
	defer sender.Close()
	receiver, err := dgrdma.New(network.Attach(to, simnet.Config{}), &dgrdma.Config{ID: 2, Memory: memory})
	if err != nil {
		return err
	}
	defer receiver.Close()
	conn, err := sender.Connect(dgrdma.Peer{ID: 2, Addr: to, Size: memory.Size()})
	if err != nil {
		return err
	}
	if _, err := receiver.Connect(dgrdma.Peer{ID: 1, Addr: from}); err != nil {
		return err
	}
	d := demonstration{conn: conn, memory: memory, receiver: receiver, blocks: blocks}
	return d.run(ctx, std, seed, func(w io.Writer) {
		out, back := network.LinkStats(from, to), network.LinkStats(to, from)
		fmt.Fprintf(w, "network     %s out, %d lost; %d back, %d lost; %d duplicated, %d reordered\n",
			count(out.Sent, "datagram"), out.Dropped(), back.Sent, back.Dropped(), out.Duplicated+back.Duplicated, out.Reordered+back.Reordered)
	})
}

// demonstration is the two endpoints between which data moves.
type demonstration struct {
	conn     *dgrdma.Conn
	memory   *dgrdma.Region
	receiver interface{ Stats() dgrdma.Stats }
	blocks   int
}

func (d *demonstration) run(ctx context.Context, std *stdio, seed uint64, aboutNetwork func(io.Writer)) error {
	data := make([]byte, d.blocks*demoBlock)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	random.Read(data)

	m := newMeter(int64(len(data)))
	start := time.Now()
	stop := m.tell(std.err)
	err := postAll(ctx, d.conn, data, &m.moved)
	elapsed := time.Since(start)
	stop()
	if err != nil {
		return err
	}
	for i := range d.blocks {
		if err := d.memory.WaitFor(ctx, uint32(4*i), uint32(i+1)); err != nil {
			return err
		}
	}
	if got := d.memory.Bytes()[demoData:]; !bytes.Equal(got, data) {
		return errors.New("the receiver's memory differs from what was sent")
	}

	s, r := d.conn.Stats(), d.receiver.Stats()
	return buffered(std.out, func(w io.Writer) error {
		fmt.Fprintf(w, "moved       %s in %v, %s, every byte verified\n", amount(int64(len(data))), elapsed.Round(time.Millisecond),
			rateText(perSecond(uint64(len(data)), elapsed)))
		aboutNetwork(w)
		fmt.Fprintf(w, "recovered   %s sent again (%d by later acknowledgements, %d by timeout), %s filtered\n",
			count(s.RetransmitsFast+s.RetransmitsTimed, "frame"), s.RetransmitsFast, s.RetransmitsTimed, count(r.Duplicates, "duplicate"))
		fmt.Fprintf(w, "completed   %s, %s written, each once\n", count(s.TransactionsDone, "transaction"), count(r.Completions, "completion word"))
		return nil
	})
}

// postAll writes data in transactions of one block each and waits for them.
func postAll(ctx context.Context, conn *dgrdma.Conn, data []byte, moved *atomic.Int64) error {
	queue := dgrdma.NewCompletionQueue(demoDepth)
	done := make([]dgrdma.Completion, demoDepth)
	free := make([]*dgrdma.Transaction, demoDepth)
	for i := range free {
		free[i] = &dgrdma.Transaction{Segments: make([]dgrdma.Segment, 1)}
	}
	blocks := len(data) / demoBlock
	for next, finished := 0, 0; finished < blocks; {
		for next < blocks && len(free) > 0 {
			t := free[len(free)-1]
			free = free[:len(free)-1]
			at := next * demoBlock
			t.Segments[0] = dgrdma.Segment{Addr: uint32(demoData + at), Bytes: data[at : at+demoBlock]}
			t.Completion = dgrdma.Word(uint32(4*next), uint32(next+1))
			if err := queue.Post(conn, t); err != nil {
				return err
			}
			next++
		}
		n, err := queue.Wait(ctx, done)
		if err != nil {
			return fmt.Errorf("%w after %d of %d MiB", errInterrupted, finished, blocks)
		}
		for _, c := range done[:n] {
			if c.Err != nil {
				return c.Err
			}
			free = append(free, c.Transaction)
			moved.Add(demoBlock)
			finished++
		}
	}
	return nil
}
