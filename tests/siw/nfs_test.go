package siw

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
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
