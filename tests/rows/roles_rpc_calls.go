package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// How calls travel, and what they are compared to.
const (
	overTCP  = "tcp"
	overRDMA = "rdma"     // without CRC
	withCRC  = "rdma-crc" // the same with CRC
	byWrites = "writes"   // no calls: verbs' own Writes
)

// What calls do.
const (
	doNull     = "null"
	doRead     = "read"
	doWrite    = "write"
	doNFSRead  = "nfs-read"
	doNFSWrite = "nfs-write"
)

// way is what moves blocks, or carries out calls, for a time. A turn ends when all that it began has ended.
type way interface {
	turn(ctx context.Context, long time.Duration) (n int, err error)
}

// turns is how many turns each of two ways has in a run, one after the other.
const turns = 5

// callFor compares two ways, and prints how many calls a second each carried.
func callFor(host, load, atOnce, long, ours, theirs string) error {
	n, err := strconv.Atoi(atOnce)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(long, 64)
	if err != nil {
		return err
	}
	ctx, memory := context.Background(), newMemory()
	names, rates := [2]string{ours, theirs}, map[string]float64{}
	var ways [2]way
	var calls [2]int
	var took, cpu [2]time.Duration
	server, err := rpc.Dial(ctx, "tcp:"+host+":"+portRPC, nil)
	if err != nil {
		return err
	}
	defer server.Close()
	// used is the processor time that both programs have taken.
	used := func() (time.Duration, error) {
		var there number64
		err := server.Bind(callProgram, rpc.None).Call(ctx, procUsage, nil, &there, nil)
		return usage(syscall.RUSAGE_SELF) + time.Duration(there), err
	}
	for i, name := range names {
		if ways[i], err = dialWay(ctx, host, name, load, n, memory); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	turn := time.Duration(seconds * float64(time.Second) / turns)
	for round := range 1 + turns { // one is not counted
		for i := range ways {
			i = (i + round) % 2 // neither always follows the other
			before, err := used()
			if err != nil {
				return err
			}
			began := time.Now()
			n, err := ways[i].turn(ctx, turn)
			if err != nil {
				return fmt.Errorf("%s: %w", names[i], err)
			}
			lasted := time.Since(began)
			after, err := used()
			if err != nil {
				return err
			}
			if round > 0 {
				calls[i], took[i], cpu[i] = calls[i]+n, took[i]+lasted, cpu[i]+after-before
			}
		}
	}
	for i, key := range [2]string{"ours", "theirs"} {
		rates[key] = float64(calls[i]) / took[i].Seconds()
		rates[key+"_cpu_us"] = float64(cpu[i].Microseconds()) / float64(max(calls[i], 1))
	}
	return json.NewEncoder(os.Stdout).Encode(rates)
}

func dialWay(ctx context.Context, host, name, load string, atOnce int, memory []byte) (way, error) {
	if name == byWrites {
		return dialWrites(ctx, host, atOnce, memory)
	}
	address, o := "tcp:"+host+":"+portRPC, &rpc.ClientOptions{NoCRC: name == overRDMA, Resend: true}
	if name != overTCP {
		address = "rdma:" + host + ":" + portRDMA
	}
	call, err := dialCalls(ctx, address, load, memory, o)
	return &calls{call, atOnce}, err
}

// dialCalls connects, and returns what carries out a call of a load: number n of them.
func dialCalls(ctx context.Context, address, load string, memory []byte, o *rpc.ClientOptions) (func(ctx context.Context, n int) error, error) {
	switch load {
	case doNFSRead, doNFSWrite:
		c, err := nfs3.Dial(ctx, address, "/", &nfs3.ClientOptions{RPC: o})
		if err != nil {
			return nil, err
		}
		root, err := c.Root(ctx)
		if err != nil {
			return nil, err
		}
		f, err := c.Lookup(ctx, nil, root.Handle, callFile)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, n int) error {
			b, at, moved := blockOf(memory, n), uint64(n%callBlocks*callBlock), 0
			var err error
			if load == doNFSRead {
				moved, _, err = c.Read(ctx, nil, f.Handle, b, at)
			} else {
				var w nfs3.Written
				w, _, err = c.Write(ctx, nil, f.Handle, b, at, nfs3.Unstable)
				moved = int(w.Count)
			}
			return whole(moved, err)
		}, nil
	}
	c, err := rpc.Dial(ctx, address, o)
	if err != nil {
		return nil, err
	}
	p := c.Bind(callProgram, rpc.None)
	switch load {
	case doNull:
		return func(ctx context.Context, _ int) error { return p.Call(ctx, procNull, nil, nil, nil) }, nil
	case doRead:
		return func(ctx context.Context, n int) error {
			which, results := number32(n%callBlocks), block(nil)
			err := p.Call(ctx, procRead, &which, &results, &rpc.CallOptions{Into: blockOf(memory, n), Direct: true})
			return whole(len(results), err)
		}, nil
	case doWrite:
		return func(ctx context.Context, n int) error {
			args := block(blockOf(memory, n))
			return p.Call(ctx, procWrite, &args, nil, &rpc.CallOptions{Direct: true})
		}, nil
	}
	return nil, fmt.Errorf("no load %s", load)
}

// whole is an error unless a block was moved.
func whole(n int, err error) error {
	if err == nil && n != callBlock {
		err = fmt.Errorf("%d octets of %d", n, callBlock)
	}
	return err
}

// calls is a way by calls, so many at once.
type calls struct {
	call   func(ctx context.Context, n int) error
	atOnce int
}

// turn is that of [way].
func (c *calls) turn(ctx context.Context, long time.Duration) (int, error) {
	var all sync.WaitGroup
	var over atomic.Bool
	defer time.AfterFunc(long, func() { over.Store(true) }).Stop()
	done, failed := make([]int, c.atOnce), make([]error, c.atOnce)
	for i := range c.atOnce {
		all.Go(func() {
			n := 0
			for failed[i] == nil && !over.Load() {
				if failed[i] = c.call(ctx, i+n*c.atOnce); failed[i] == nil {
					n++
				}
			}
			done[i] = n
		})
	}
	all.Wait()
	sum := 0
	for _, n := range done {
		sum += n
	}
	return sum, errors.Join(failed...)
}
