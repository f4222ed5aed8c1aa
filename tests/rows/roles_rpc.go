package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// Ports of a server of calls, which has three: each carries the same memory in its own way.
const (
	portRPC    = "7206" // record marking over TCP
	portRDMA   = "7207" // RPC-over-RDMA
	portWrites = "7208" // verbs' own Writes
)

// Calls move as many blocks of memory as no processor's cache holds, in turn at both ends.
const (
	callBlock  = 1 << 20
	callBlocks = 64
)

// callProgram reads and writes blocks of memory.
var callProgram = &rpc.Program{
	Number: 0x20000001, Version: 1, Name: "blocks",
	Procedures: []rpc.Procedure{
		procNull:  {Name: "NULL", Idempotent: true},
		procRead:  {Name: "READ", BulkResults: 1, Idempotent: true},
		procWrite: {Name: "WRITE", BulkArgs: 1, Idempotent: true},
		procUsage: {Name: "USAGE", Idempotent: true},
	},
}

const (
	procNull  = 0
	procRead  = 1
	procWrite = 2
	procUsage = 3
)

// number32 is the argument of READ: which block.
type number32 uint32

func (n *number32) MarshalXDR(e *xdr.Encoder)   { e.Uint32(uint32(*n)) }
func (n *number32) UnmarshalXDR(d *xdr.Decoder) { *n = number32(d.Uint32()) }

// number64 is the result of USAGE: the processor time that the server has taken, in ns.
type number64 uint64

func (n *number64) MarshalXDR(e *xdr.Encoder)   { e.Uint64(uint64(*n)) }
func (n *number64) UnmarshalXDR(d *xdr.Decoder) { *n = number64(d.Uint64()) }

// block is the result of READ, and the argument of WRITE. It travels by reference.
type block []byte

func (b *block) MarshalXDR(e *xdr.Encoder)   { e.Bulk(*b) }
func (b *block) UnmarshalXDR(d *xdr.Decoder) { *b = d.Bulk(callBlock) }

// newMemory returns memory that was written: else all of it is one page.
func newMemory() []byte {
	memory := make([]byte, callBlocks*callBlock)
	for at := range memory {
		memory[at] = byte(at)
	}
	return memory
}

// blockOf returns a block of memory, in turn.
func blockOf(memory []byte, n int) []byte {
	return memory[n%callBlocks*callBlock:][:callBlock:callBlock]
}

// serveCalls answers calls, over TCP and over RDMA, and writes by verbs, all of one memory.
func serveCalls(host string) error {
	memory := newMemory()
	s := rpc.NewServer(&rpc.ServerOptions{NoCRC: true})
	s.Handle(callProgram, rpc.HandlerFunc(func(_ context.Context, c *rpc.Call) error {
		if c.Procedure == procUsage {
			took := number64(usage(syscall.RUSAGE_SELF))
			return c.Reply(&took)
		}
		if c.Procedure == procWrite {
			return c.Decode(new(block))
		}
		var n number32
		if err := c.Decode(&n); err != nil {
			return err
		}
		b := block(blockOf(memory, int(n)))
		return c.Reply(&b)
	}))
	files := localfs.NewMemory(nil)
	if err := fillFile(files, memory); err != nil {
		return err
	}
	nfs3.NewServer(files, &nfs3.ServerOptions{Squash: nfs3.SquashNone}).Register(s)

	h, err := verbs.Open("tcp:" + host)
	if err != nil {
		return err
	}
	rdma, err := h.Listen(portRDMA)
	if err != nil {
		return err
	}
	writes, err := h.Listen(portWrites)
	if err != nil {
		return err
	}
	tcp, err := net.Listen("tcp", net.JoinHostPort(host, portRPC))
	if err != nil {
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- s.ServeRDMA(rdma) }()
	go func() { failed <- s.ServeTCP(tcp) }()
	go func() { failed <- serveWrites(writes, memory) }()
	return <-failed
}

// callFile is the file that calls of NFS read and write.
const callFile = "blocks"

func fillFile(files *localfs.Memory, data []byte) error {
	ctx := context.Background()
	root, err := files.Root(ctx)
	if err != nil {
		return err
	}
	f, _, err := files.Create(ctx, &nfs3.Cred{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, root.Handle, callFile, &nfs3.CreateHow{})
	if err != nil {
		return err
	}
	if w, _, err := files.Write(ctx, nil, f.Handle, data, 0, nfs3.Unstable); err != nil || int(w.Count) != len(data) {
		return fmt.Errorf("the file was written up to %d: %v", w.Count, err)
	}
	return nil
}
