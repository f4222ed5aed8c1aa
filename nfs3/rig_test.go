package nfs3_test

import (
	"net"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// serve serves an FS on a loopback address over TCP, and returns that as rpc.Dial takes it.
func serve(t testing.TB, fs nfs3.FS, o *nfs3.ServerOptions) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveBy(t, fs, o, func(s *rpc.Server) error { return s.ServeTCP(l) })
	return "tcp:" + l.Addr().String()
}

// serveRDMA does so over RDMA.
func serveRDMA(t testing.TB, fs nfs3.FS, o *nfs3.ServerOptions) (address string) {
	t.Helper()
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	l, err := host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	serveBy(t, fs, o, func(s *rpc.Server) error { return s.ServeRDMA(l) })
	return "rdma:" + l.Addr().String()
}

func serveBy(t testing.TB, fs nfs3.FS, o *nfs3.ServerOptions, carry func(*rpc.Server) error) {
	s := rpc.NewServer(&rpc.ServerOptions{Failed: func(c *rpc.Call, err error) { t.Errorf("procedure %d of %v: %v", c.Procedure, c.Program, err) }})
	nfs3.NewServer(fs, o).Register(s)
	done := make(chan error, 1)
	go func() { done <- carry(s) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != rpc.ErrClosed {
			t.Error(err)
		}
	})
}

// dial mounts what is served there.
func dial(t testing.TB, address, path string) *nfs3.Client {
	t.Helper()
	c, err := nfs3.Dial(t.Context(), address, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// remote is an FS as a client of its server has it.
func remote(t *testing.T, fs nfs3.FS, serve func(testing.TB, nfs3.FS, *nfs3.ServerOptions) string) nfs3.FS {
	return dial(t, serve(t, fs, &nfs3.ServerOptions{Squash: nfs3.SquashNone}), "/")
}
