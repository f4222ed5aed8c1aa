package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// nfsDemoSize is how much nfs demo moves each way, and nfsDemoMost how much it may: the data is in memory three times.
const (
	nfsDemoSize = 64 << 20
	nfsDemoMost = 512 << 20
)

var nfsDemoCommand = command{
	name: "nfs demo", summary: "write and read a file by NFS over RDMA in this process, and verify it",
	about: `A server of NFS version 3 that has its files in memory, and a client that mounts them over RDMA
(iWARP, RDMA over TCP, on the loopback interface), both in this process: no privileges, RDMA NIC,
kernel module or mount are needed. The client writes a file, has it committed, and reads it. What it
read is compared with what it wrote.`,
	flags: func(fs *flag.FlagSet) action {
		size := &sizeFlag{value: nfsDemoSize}
		fs.Var(size, "size", "`bytes` to write and to read, 1 to 512M")
		return func(ctx context.Context, std *stdio, _ []string) error {
			if size.value < 1 || size.value > nfsDemoMost {
				return badUsage("--size %v: need 1 to 512M", size)
			}
			return nfsDemo(ctx, int(size.value), std)
		}
	},
}

// nfsDemonstration is what a demonstration has done.
type nfsDemonstration struct {
	at          string
	mounted     time.Duration
	client      *rpc.Client
	wrote, read time.Duration
	calls       [1 + nfs3.ProcCommit]atomic.Int64 // by procedure
}

func nfsDemo(ctx context.Context, size int, std *stdio) error {
	d := new(nfsDemonstration)
	stop, err := d.serve()
	if err != nil {
		return err
	}
	defer stop()
	files, err := d.mount(ctx)
	if d.client != nil {
		defer d.client.Close()
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(data)
	m := newMeter(2 * int64(size))
	shown := m.show(std.err)
	got, err := d.move(files, data, m)
	shown()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w after %s", context.Cause(ctx), amount(m.moved.Load()))
	case err != nil:
		return err
	case !bytes.Equal(got, data):
		return errors.New("what was read differs from what was written")
	}
	return buffered(std.out, func(w io.Writer) error {
		d.print(w, got)
		return nil
	})
}

// serve serves files in memory over RDMA, until stop is called.
func (d *nfsDemonstration) serve() (stop func(), err error) {
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		return nil, err
	}
	l, err := host.Listen("0")
	if err != nil {
		host.Close()
		return nil, err
	}
	d.at = "rdma:" + l.Addr().String()
	s := rpc.NewServer(&rpc.ServerOptions{Auth: func(c *rpc.Call) error {
		if c.Program == nfs3.Program {
			d.calls[c.Procedure].Add(1)
		}
		return nil
	}})
	nfs3.NewServer(localfs.NewMemory(nil), &nfs3.ServerOptions{Export: "/demo"}).Register(s)
	ended := make(chan error, 1)
	go func() { ended <- s.ServeRDMA(l) }()
	return func() {
		s.Close()
		<-ended
		host.Close()
	}, nil
}

// mount mounts the files as a client.
func (d *nfsDemonstration) mount(ctx context.Context) (*nfs3.Volume, error) {
	began := time.Now()
	var err error
	if d.client, err = rpc.Dial(ctx, d.at, &rpc.ClientOptions{NoReconnect: true}); err != nil {
		return nil, err
	}
	root, err := nfs3.Mount(ctx, d.client, "/demo", rpc.ProcessSys().Auth())
	if err != nil {
		return nil, err
	}
	files, err := nfs3.NewClient(ctx, d.client, root, nil)
	d.mounted = time.Since(began)
	if err != nil {
		return nil, err
	}
	return nfs3.NewVolume(ctx, files, nil)
}

// move writes a file and reads it.
func (d *nfsDemonstration) move(files *nfs3.Volume, data []byte, m *meter) ([]byte, error) {
	f, err := files.Create("file")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err := f.ReadFrom(&passingIn{r: bytes.NewReader(data), meter: m}); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	d.wrote = time.Since(began)
	if f, err = files.OpenFile("file"); err != nil {
		return nil, err
	}
	got := bytes.NewBuffer(make([]byte, 0, len(data)))
	began = time.Now()
	_, err = f.WriteTo(&passing{w: got, meter: m})
	d.read = time.Since(began)
	return got.Bytes(), err
}

func (d *nfsDemonstration) print(w io.Writer, got []byte) {
	rate := func(took time.Duration) string {
		return fmt.Sprintf("%s in %v, %s", amount(int64(len(got))), took.Round(time.Millisecond), rateText(perSecond(uint64(len(got)), took)))
	}
	fmt.Fprintf(w, "served      files in memory, at %s/demo (iWARP: RDMA over TCP)\n", d.at)
	terms := ""
	if t, ok := d.client.RDMATerms(); ok {
		terms = fmt.Sprintf(", by RPC-over-RDMA version %d, %s at once", t.Version, count(t.Calls, "call"))
	}
	fmt.Fprintf(w, "mounted     in %v%s\n", d.mounted.Round(10*time.Microsecond), terms)
	fmt.Fprintf(w, "wrote       %s, by %s; the server fetched the data with RDMA Reads\n", rate(d.wrote), d.made(nfs3.ProcWrite, nfs3.ProcCommit))
	fmt.Fprintf(w, "read        %s, by %s; the server placed the data with RDMA Writes\n", rate(d.read), d.made(nfs3.ProcRead))
	fmt.Fprintf(w, "verified    every byte, SHA-256 %x\n", sha256.Sum256(got))
	fmt.Fprintf(w, "next        dgrdmacat nfs serve DIR has Linux mount a directory\n")
}

// made says how many calls there were of some procedures; of none it says nothing: what the server answers as stable needs no COMMIT.
func (d *nfsDemonstration) made(procedures ...uint32) (text string) {
	for _, p := range procedures {
		n := d.calls[p].Load()
		if n > 0 && text != "" {
			text += " and "
		}
		if n > 0 {
			text += fmt.Sprintf("%d %s", n, nfs3.Program.Procedures[p].Name)
		}
	}
	return text
}
