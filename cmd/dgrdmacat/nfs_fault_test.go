package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpcrdma"
)

// TestNFSFaults checks what the client of NFS makes of each fault of nfs serve --fault, in both versions of RPC-over-RDMA: whether it reads a file
// all the same, over another connection where that is needed, or with which error it fails.
func TestNFSFaults(t *testing.T) {
	t.Parallel()
	any := errors.New("any")
	const every = 7
	for kind, x := range map[string]struct {
		err         error // of a READ; nil: all succeed
		connections bool  // there were several
	}{
		"lost": {nil, true}, "twice": {nil, false}, "stray": {nil, true}, "end": {nil, true}, "credit": {nil, false}, "cut": {nil, true},
		"long": {rpcrdma.ErrReply, false}, "handle": {rpcrdma.ErrReply, false}, "refuse": {any, false},
	} {
		for _, version := range []rpc.Versions{rpc.V1, rpc.V2} {
			t.Run(fmt.Sprint(kind, " ", version), func(t *testing.T) {
				t.Parallel()
				f := &nfsFaults{kind: kind, every: every}
				_, overRDMA := listening(t)
				s := rpc.NewServer(&rpc.ServerOptions{Fault: f.instead, Versions: version})
				defer s.Close()
				nfs3.NewServer(localfs.NewMemory(nil), &nfs3.ServerOptions{Squash: nfs3.SquashNone}).Register(s)
				go s.ServeRDMA(overRDMA)
				o := &rpc.ClientOptions{Resend: true}
				if x.connections {
					o.Timeout = 500 * time.Millisecond
				}
				c, err := rpc.Dial(t.Context(), "rdma:"+overRDMA.Addr().String(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				b := c.Bind(nfs3.Program, rpc.None)
				for i := range 2 * every {
					var r nfs3.ReadResult
					err := b.Call(t.Context(), nfs3.ProcRead, &nfs3.ReadArgs{File: nfs3.Handle("none"), Count: 64 << 10}, &r, &rpc.CallOptions{Into: make([]byte, 64<<10)})
					var refused *rpcrdma.PeerError
					switch wrong := x.err != nil && i%every == every-1; {
					case !wrong && (err != nil || r.Status == nfs3.OK):
						t.Errorf("call %d: %v, %v", i, r.Status, err)
					case wrong && x.err == any && !errors.As(err, &refused), wrong && x.err != any && !errors.Is(err, x.err):
						t.Errorf("call %d: %v", i, err)
					}
				}
				if n := c.Stats(); (n.Connections > 1) != x.connections {
					t.Errorf("counted %+v", n)
				}
			})
		}
	}
}

// TestNFSServeFault checks that a server that misbehaves says so, that it speaks the version of RPC-over-RDMA that it is told to, and that a
// file is read from it all the same; and what is said of flags that are wrong.
func TestNFSServeFault(t *testing.T) {
	t.Parallel()
	p, rdma, tcp := startNFS(t, t.TempDir(), "--rpcrdma", "1", "--fault", "twice", "--every", "2")
	eventually(t, "it says so", func() bool {
		return strings.Contains(p.err.String(), "misbehaves over RDMA with one reply of 2: the reply comes twice\n")
	})
	r := new(nfsRig)
	r.wants(t, []string{"nfs", "ls", rdma + "/export"}, exitOK, "", "")
	code, out, stderr := runFor(t, patient(t), "rpcinfo", rdma, "nfs", "3")
	if code != exitOK || !strings.Contains(out, " by RPC-over-RDMA version 1,") {
		t.Errorf("code %d, %s%s", code, out, stderr)
	}
	for _, args := range [][]string{{"nfs", "ls"}, {"nfs", "cat"}, {"nfs", "get"}, {"nfs", "rm"}, {"rpcinfo"}} {
		args := append(args, "--rpcrdma", "1", tcp+"/export")
		if args[0] == "rpcinfo" {
			args = append(args[:3], tcp, "nfs")
		}
		r.wants(t, args, exitUsage, "", "--rpcrdma 1: "+tcp+" is reached over TCP alone: need an address that begins with rdma:")
	}
	for args, says := range map[string]string{
		"--fault some x": "--fault some: need one of none, credit, cut, ", "--every 3 x": "--every 3 is of --fault: name one", "--fault lost --every 0 x": "--every 0: need 1 or more",
		"--rpcrdma 3 x": "--rpcrdma 3: need one of 1, 2, any",
	} {
		r.wants(t, append([]string{"nfs", "serve"}, strings.Fields(args)...), exitUsage, "", says)
	}
}

// TestNFSVersions checks that --rpcrdma has a client speak that version.
func TestNFSVersions(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	at, _, _ := strings.Cut(r.rdma, "/")
	for _, version := range []string{"1", "2"} {
		code, out, stderr := runFor(t, patient(t), "rpcinfo", "--rpcrdma", version, at, "nfs")
		if code != exitOK || !strings.Contains(out, " by RPC-over-RDMA version "+version+",") {
			t.Errorf("code %d, %s%s", code, out, stderr)
		}
		r.wants(t, []string{"nfs", "ls", "--rpcrdma", version, r.rdma}, exitOK, "", "")
	}
}

// TestNFSWrongReplies checks what a command says of a server whose replies are refusals or cannot be used, in words that have no options of Go, in both
// versions of RPC-over-RDMA.
func TestNFSWrongReplies(t *testing.T) {
	t.Parallel()
	for kind, says := range map[string]string{
		"refuse": ": the server refused EXPORT of MOUNT version 3 (", "long": " version 3 is wrong: cannot use the Reply: ", "stray": ", but messages came that cannot be read, or are to no call\n",
		"cut": ", but messages came that cannot be read, or are to no call\n",
	} {
		for _, version := range []rpc.Versions{rpc.V1, rpc.V2} {
			t.Run(fmt.Sprint(kind, " ", version), func(t *testing.T) {
				t.Parallel()
				f := &nfsFaults{kind: kind, every: 1}
				_, overRDMA := listening(t)
				s := rpc.NewServer(&rpc.ServerOptions{Fault: f.instead, Versions: version})
				defer s.Close()
				files := localfs.NewMemory(nil)
				nfs3.NewServer(files, &nfs3.ServerOptions{Squash: nfs3.SquashNone}).Register(s)
				go s.ServeRDMA(overRDMA)
				v, err := nfs3.NewVolume(t.Context(), files, nil)
				if err == nil {
					err = v.WriteFile("file", make([]byte, 100<<10), 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
				r := new(nfsRig)
				r.wants(t, []string{"nfs", "cat", "--wait", "5s", "rdma:" + overRDMA.Addr().String() + "/file"}, exitError, "", says)
			})
		}
	}
}
