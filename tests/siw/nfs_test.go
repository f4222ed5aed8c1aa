package siw

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/rpc/portmap"
	"github.com/dgrdma/dgrdma/verbs"
)

// serveNFS serves a directory to the guests, over RDMA and TCP. It returns the options with which Linux mounts it.
func serveNFS(t *testing.T, fs nfs3.FS, o *rpc.ServerOptions, no *nfs3.ServerOptions) (options string) {
	t.Helper()
	s := rpc.NewServer(o)
	nfs3.NewServer(fs, no).Register(s)
	host, err := verbs.Open("tcp:" + hostAddr)
	if err != nil {
		t.Fatal(err)
	}
	rdma, err := host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", hostAddr+":0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- s.ServeRDMA(rdma) }()
	go func() { ended <- s.ServeTCP(tcp) }()
	t.Cleanup(func() {
		s.Close()
		<-ended
		<-ended
		host.Close()
	})
	_, port, _ := net.SplitHostPort(rdma.Addr().String())
	return fmt.Sprintf("vers=3,rdma,port=%s,nolock,mountproto=tcp,mountport=%d", port, tcp.Addr().(*net.TCPAddr).Port)
}

// mount mounts what serveNFS serves in the guest, until the test ends.
func mount(t *testing.T, options string) {
	t.Helper()
	guest(t, "modprobe -a rpcrdma nfs nfsv3; mkdir -p /mnt/n; mount.nfs "+hostAddr+":/ /mnt/n -o "+options)
	t.Cleanup(func() { guest(t, "umount -l /mnt/n") })
}

// TestLinuxMountsOurServer checks that Linux's client works with files of our server.
func TestLinuxMountsOurServer(t *testing.T) {
	for _, size := range []int{4096, 65536, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			options := serveNFS(t, nfs3.NewMemory(nil), nil, &nfs3.ServerOptions{Squash: nfs3.SquashNone})
			mount(t, fmt.Sprintf("%s,rsize=%d,wsize=%d", options, size, size))
			out := guest(t, "cd /mnt/n && dd if=/dev/urandom of=/tmp/x bs=150003 count=7 2>/dev/null && cp /tmp/x a && sync && echo 3 > /proc/sys/vm/drop_caches && cmp a /tmp/x && mkdir d && for i in $(seq 700); do echo $i > d/$i; done && ls d | wc -l && mv a b && rm b && ln -s d l && readlink l && ls -l")
			if !strings.Contains(out, "700\n") {
				t.Error(out)
			}
		})
	}
}

// TestLinuxServesOurClient checks that our client reads and writes files of Linux's server, whichever version of RPC-over-RDMA it
// offers first (RPCN-03, LX-02, LX-13).
func TestLinuxServesOurClient(t *testing.T) {
	guest(t, "nfsd-rdma")
	mapper, err := rpc.Dial(deadline(t), "tcp:"+guestAddr+":"+portmap.Port, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mapper.Close()
	mounted, err := portmap.GetPort(deadline(t), mapper, nfs3.MountProgram, portmap.TCP)
	if err != nil {
		t.Fatal(err)
	}
	for _, versions := range []rpc.Versions{0, rpc.V1} {
		t.Run(fmt.Sprint(versions), func(t *testing.T) {
			c, err := nfs3.Dial(deadline(t), "rdma:"+guestAddr+":20049", "/export", &nfs3.ClientOptions{
				MountAddress: fmt.Sprintf("tcp:%s:%d", guestAddr, mounted), RPC: &rpc.ClientOptions{Versions: versions},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			files, err := nfs3.NewVolume(deadline(t), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			blob, err := files.ReadFile("blob")
			if err != nil || !bytes.Equal(blob, pattern(1, 65536)) {
				t.Errorf("blob has %d octets: %v", len(blob), err)
			}
			data := pattern(3, 1<<20+3)
			if err := files.WriteFile("ours", data, 0o644); err != nil {
				t.Fatal(err)
			}
			if back, err := files.ReadFile("ours"); err != nil || !bytes.Equal(back, data) {
				t.Errorf("%d octets come back: %v", len(back), err)
			}
			if sum := fmt.Sprintf("%x", sha256.Sum256(data)); !strings.Contains(guest(t, "sha256sum /export/ours"), sum) {
				t.Error("the guest has other octets")
			}
			if err := files.Remove("ours"); err != nil {
				t.Error(err)
			}
		})
	}
}
