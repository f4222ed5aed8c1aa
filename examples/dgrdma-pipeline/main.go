// Pipeline has three stages, each an endpoint of its own: one makes numbers, one
// squares them, one adds them up. A stage that is slow slows those before it, and
// nothing is lost or kept anywhere but in the links' buffers.
//
//	dgrdma-pipeline [COUNT]
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/dgrdma/dgrdma/link"
)

func main() {
	count := 100_000
	const usage = "usage: dgrdma-pipeline [COUNT]"
	if len(os.Args) > 1 {
		if os.Args[1] == "-h" {
			fmt.Println(usage)
			return
		}
		n, err := strconv.Atoi(os.Args[1])
		if err != nil || n < 0 {
			fmt.Fprintln(os.Stderr, usage)
			os.Exit(2)
		}
		count = n
	}
	sum, err := run(context.Background(), count)
	if err != nil {
		fmt.Fprintln(os.Stderr, "dgrdma-pipeline:", err)
		os.Exit(1)
	}
	fmt.Printf("the squares of 1 to %d add up to %d\n", count, sum)
}

// run starts the stages, the last one first, and returns what comes out.
func run(ctx context.Context, count int) (sum uint64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	squares, err := stage("numbers")
	if err != nil {
		return 0, err
	}
	defer squares.host.Close()
	sums, err := stage("squares")
	if err != nil {
		return 0, err
	}
	defer sums.host.Close()
	go func() {
		if err := makeNumbers(ctx, squares.host.URL(), count); err != nil {
			cancel(err)
		}
	}()
	go func() {
		if err := squares.square(ctx, sums.host.URL()); err != nil {
			cancel(err)
		}
	}()
	return sums.add(ctx)
}

// receiver is a host that listens on a port.
type receiver struct {
	host *link.Host
	port *link.Listener
}

func stage(port string) (r receiver, err error) {
	if r.host, err = link.Open("udp:127.0.0.1", nil); err != nil {
		return r, err
	}
	if r.port, err = r.host.Listen(port, &link.Options{Buffers: 1024, Size: 8}); err != nil {
		r.host.Close()
	}
	return r, err
}

// makeNumbers is the first stage.
func makeNumbers(ctx context.Context, to string, count int) error {
	host, err := link.Open("udp:127.0.0.1", nil)
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Dial(ctx, to, "numbers", nil)
	if err != nil {
		return err
	}
	for i := range count {
		if err := l.Out.Send(ctx, 0, binary.LittleEndian.AppendUint64(nil, uint64(i+1))); err != nil {
			return err
		}
	}
	return l.Close()
}

// square is the second stage. It fills the next stage's buffers in place.
func (r receiver) square(ctx context.Context, to string) error {
	in, err := r.port.Accept(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := r.host.Dial(ctx, to, "squares", nil)
	if err != nil {
		return err
	}
	for m, err := range in.In.Messages(ctx) {
		if err != nil {
			return err
		}
		n := binary.LittleEndian.Uint64(m.Bytes)
		b, err := out.Out.Acquire(ctx)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(b.Bytes, n*n)
		if err := out.Out.Commit(b, 0, 8); err != nil {
			return err
		}
	}
	return out.Close()
}

// add is the last stage.
func (r receiver) add(ctx context.Context) (sum uint64, err error) {
	in, err := r.port.Accept(ctx)
	if err != nil {
		return 0, err
	}
	for {
		m, err := in.In.Recv(ctx)
		if err == io.EOF {
			return sum, in.Close()
		}
		if err != nil {
			return 0, errors.Join(err, in.Close())
		}
		sum += binary.LittleEndian.Uint64(m.Bytes)
		if err := in.In.Release(m); err != nil {
			return 0, err
		}
	}
}
