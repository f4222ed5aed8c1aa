package bench_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/dgrdma/dgrdma/bench"
)

// pipe puts a load on anything that can be written to.
type pipe struct{ io.WriteCloser }

func (p pipe) Post(op *bench.Op) (complete bool, err error) {
	_, err = p.Write(op.Bytes)
	return true, err
}

func (p pipe) Wait(context.Context) error { return p.Close() }

// A load on something else than transactions and links.
func ExampleLoad() {
	from, to := io.Pipe()
	received := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, from)
		received <- n
	}()
	times := bench.NewHistogram()
	load := bench.NewLoad(bench.Plan{Size: 4096, Depth: 1, Peers: 1, Active: 1}, pipe{to}, times)
	load.Start(20 * time.Millisecond)
	ctx := context.Background()
	if err := load.Over(ctx); err != nil {
		log.Fatal(err)
	}
	if err := load.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	_, bytes, _ := load.Progress()
	fmt.Println(bytes > 0, uint64(<-received) == bytes, times.Quantile(0.99) > 0)
	// Output: true true true
}
