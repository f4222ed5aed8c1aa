package main

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// nfsRig is a server of files within the process of the test, and a volume of them for the test's user, whose files the commands may read.
type nfsRig struct {
	*nfs3.Volume
	t         *testing.T
	rdma, tcp string // addresses of its export
	rpc       *rpc.Server
}

// serveNFS serves files over RDMA and TCP, until the test ends.
func serveNFS(t *testing.T, files nfs3.FS, o *nfs3.ServerOptions) *nfsRig {
	t.Helper()
	if o == nil {
		o = &nfs3.ServerOptions{Export: "/export", Squash: nfs3.SquashNone}
	}
	volume, err := nfs3.NewVolume(t.Context(), files, &nfs3.Cred{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())})
	if err != nil {
		t.Fatal(err)
	}
	_, overRDMA := listening(t)
	overTCP, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(nil)
	nfs3.NewServer(files, o).Register(s)
	go s.ServeRDMA(overRDMA)
	go s.ServeTCP(overTCP)
	t.Cleanup(func() { s.Close() })
	return &nfsRig{volume, t, "rdma:" + overRDMA.Addr().String() + o.Export, "tcp:" + overTCP.Addr().String() + o.Export, s}
}

func (r *nfsRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// overBoth runs a test over both transports, with the address of the export.
func (r *nfsRig) overBoth(f func(t *testing.T, at string)) {
	r.t.Run("rdma", func(t *testing.T) { f(t, r.rdma) })
	r.t.Run("tcp", func(t *testing.T) { f(t, r.tcp) })
}

// wants runs a command, and compares what it prints and how it ends. says is part of what it says of a failure, in one line.
func (r *nfsRig) wants(t *testing.T, args []string, code int, out, says string) {
	t.Helper()
	got, stdout, stderr := runFor(t, patient(t), args...)
	if got != code || stdout != out || !strings.Contains(stderr, says) || code != exitOK && strings.Count(stderr, "\n") != 1 {
		t.Errorf("%v: code %d, %q, %s", args, got, stdout, stderr)
	}
}

// silentRDMA is a server that accepts connections over RDMA, and says nothing.
func silentRDMA(t *testing.T) string {
	return "rdma:" + strings.TrimPrefix(accepting(t, nil, func(*verbs.QueuePair) {}), "tcp:")
}
