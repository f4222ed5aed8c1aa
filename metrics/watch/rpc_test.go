package watch

import (
	"context"
	"net"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
)

// TestRPC: a server of ONC RPC is shown with what it has done, and what it served by NFS, until it is closed.
func TestRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(&rpc.ServerOptions{Credits: 7})
	of := nfs3.NewServer(localfs.NewMemory(nil), &nfs3.ServerOptions{Squash: nfs3.SquashNone})
	of.Register(s)
	go s.ServeTCP(l)
	defer s.Close()
	c := New()
	c.AddRPC(RPC(s, of, "here"))
	client, err := nfs3.Dial(t.Context(), "tcp:"+l.Addr().String(), "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	v, err := nfs3.NewVolume(t.Context(), client, &nfs3.Cred{})
	if err == nil {
		err = v.WriteFile("file", make([]byte, 1000), 0o644)
	}
	if err == nil {
		_, err = v.ReadFile("file")
	}
	if err != nil {
		t.Fatal(err)
	}
	v.Stat("none")
	strange, err := rpc.Dial(context.Background(), "tcp:"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer strange.Close()
	strange.Bind(&rpc.Program{Number: 4711, Procedures: []rpc.Procedure{{}}}, rpc.None).Call(t.Context(), 0, nil, nil, nil)
	got := c.View().RPC
	if len(got) != 1 || got[0].Name != "here" || got[0].Connections != 2 || got[0].Credits != 7 {
		t.Fatalf("%+v", got)
	}
	if g := got[0]; g.ReadBytes != 1000 || g.WriteBytes != 1000 || g.NFS["NFS3_OK"] < 4 || g.NFS["NFS3ERR_NOENT"] != 1 || g.Counters["calls_unavailable"] != 1 ||
		g.Counters["calls"] < g.NFS["NFS3_OK"]+2 {
		t.Errorf("%+v", g)
	}
	calls := make(map[string]uint64)
	for _, p := range got[0].Procedures {
		if p.Version != 3 || p.RDMA != 0 {
			t.Errorf("%+v", p)
		}
		calls[p.Program+" "+p.Name] = p.TCP
	}
	if calls["NFS READ"] != 1 || calls["NFS CREATE"] != 1 || calls["MOUNT MNT"] != 1 || calls["NFS LOOKUP"] < 2 || calls["NFS RENAME"] != 0 {
		t.Errorf("calls by procedure: %v", calls)
	}
	s.Close()
	if got := c.View().RPC; len(got) != 0 {
		t.Errorf("after its end: %+v", got)
	}
}
