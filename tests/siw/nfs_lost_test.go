package siw

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
)

// during does lines of shell in the guest, and calls f from time to time until they have ended.
func during(t *testing.T, every time.Duration, f func(), work func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-time.After(every):
				f()
			case <-ctx.Done():
				return
			}
		}
	})
	defer all.Wait()
	defer cancel()
	work()
}

// TestLinuxWhenConnectionsAreKilled checks that nothing is lost and nothing is done twice while the connections of Linux's client are
// killed again and again (LX-30). Each of them may crash the guest's kernel, so there are few.
func TestLinuxWhenConnectionsAreKilled(t *testing.T) {
	installExercise(t)
	e := serveNFS(t, localfs.NewMemory(nil), nil, nil)
	p := newProxy(t, e.rdma)
	kills := 0
	during(t, 3*time.Second, func() {
		if kills < *most {
			kills += p.kill()
		}
	}, func() {
		mounted(t, e.mount(p.port(), "rsize=65536,wsize=65536"), 300,
			fmt.Sprintf("exercise -seed %d -n 500 random random", *seed),
			"exercise -n 200 files .",
			"dd if=/dev/urandom of=/tmp/x bs=64k count=100 2>/dev/null && cp /tmp/x a && echo 3 > /proc/sys/vm/drop_caches && cmp a /tmp/x && rm /tmp/x a")
	})
	stats := e.server.Stats()
	t.Logf("%d connections were killed, %d made; %d calls, %d of them came again", kills, p.connections(), stats.Calls, stats.Duplicates)
	if kills == 0 {
		t.Error("no connection was killed, so the test says nothing")
	}
}

// losing is a file system that tells of the first change of each kind, when it has made it, so that its reply can be lost.
type losing struct {
	nfs3.FS
	lose func()

	mu   sync.Mutex
	lost map[string]bool
	did  map[string]int
}

func (l *losing) changed(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.did[what]++
	if !l.lost[what] {
		l.lost[what] = true
		l.lose()
	}
}

func (l *losing) Create(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, how *nfs3.CreateHow) (nfs3.Object, nfs3.WCC, error) {
	defer l.changed("create")
	return l.FS.Create(ctx, c, dir, name, how)
}

func (l *losing) Mkdir(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, set *nfs3.SetAttr) (nfs3.Object, nfs3.WCC, error) {
	defer l.changed("mkdir")
	return l.FS.Mkdir(ctx, c, dir, name, set)
}

func (l *losing) Symlink(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, name, target string, set *nfs3.SetAttr) (nfs3.Object, nfs3.WCC, error) {
	defer l.changed("symlink")
	return l.FS.Symlink(ctx, c, dir, name, target, set)
}

func (l *losing) Remove(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.WCC, error) {
	defer l.changed("remove")
	return l.FS.Remove(ctx, c, dir, name)
}

func (l *losing) Rmdir(ctx context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.WCC, error) {
	defer l.changed("rmdir")
	return l.FS.Rmdir(ctx, c, dir, name)
}

func (l *losing) Rename(ctx context.Context, c *nfs3.Cred, from nfs3.Handle, name string, to nfs3.Handle, newName string) (nfs3.WCC, nfs3.WCC, error) {
	defer l.changed("rename")
	return l.FS.Rename(ctx, c, from, name, to, newName)
}

func (l *losing) Link(ctx context.Context, c *nfs3.Cred, h, dir nfs3.Handle, name string) (nfs3.PostAttr, nfs3.WCC, error) {
	defer l.changed("link")
	return l.FS.Link(ctx, c, h, dir, name)
}

// TestLinuxWhenRepliesAreLost checks that a call whose reply was lost with its connection is answered by the reply that was kept, when
// Linux's client sends it again with the same XID (LX-30): each change is made once, and succeeds.
func TestLinuxWhenRepliesAreLost(t *testing.T) {
	eachFS(t, func(t *testing.T, fs nfs3.FS) {
		l := &losing{FS: fs, lost: map[string]bool{}, did: map[string]int{}}
		e := serveNFS(t, l, nil, nil)
		p := newProxy(t, e.rdma)
		l.lose = p.loseNext
		out := mounted(t, e.mount(p.port(), ""), 200,
			"mkdir d && echo text > d/a && ln d/a d/b && mv d/a d/c && ln -s target d/l && rm d/b",
			"cat d/c && readlink d/l && ls d | wc -l && rm d/c d/l && rmdir d && ls | wc -l")
		if !strings.HasSuffix(out, "text\ntarget\n2\n0\n") {
			t.Error(out)
		}
		want := map[string]int{"mkdir": 1, "create": 1, "link": 1, "rename": 1, "symlink": 1, "remove": 3, "rmdir": 1}
		if fmt.Sprint(l.did) != fmt.Sprint(want) {
			t.Errorf("done: %v; wanted: %v", l.did, want)
		}
		if n := e.server.Stats().Duplicates; n < uint64(len(want)) {
			t.Errorf("%d calls were answered by replies that were kept; %d replies were lost", n, len(want))
		}
	})
}

// TestLinuxWhenServerRestarts checks that Linux's client writes again what a server that crashed has lost, because the verifier of writes
// is another one then; and that what was committed is there after one more crash.
func TestLinuxWhenServerRestarts(t *testing.T) {
	installExercise(t)
	d, err := localfs.OpenDirectory(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v := newVolatile(d)
	e := serveNFS(t, v, nil, nil)
	p := newProxy(t, e.rdma)
	mount := e.mount(p.port(), "rsize=65536,wsize=16384")
	restarts, lost := 0, 0
	restart := func() {
		e.close()
		lost += v.crash()
		restarts++
		e = serveNFS(t, v, nil, nil)
		p.redirect(e.rdma)
	}
	var out string
	during(t, 3*time.Second, func() {
		if restarts < *most {
			restart()
		}
	}, func() {
		out = mounted(t, mount, 300,
			"i=0; while [ $i -lt 16 ]; do dd if=/dev/urandom of=/tmp/x bs=64k count=64 2>/dev/null && cat /tmp/x >> b; i=$((i+1)); done; sha256sum < b",
			fmt.Sprintf("exercise -seed %d -n 400 random random", *seed))
	})
	restart()
	files, err := nfs3.NewVolume(t.Context(), v, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := files.ReadFile("b")
	if sum := fmt.Sprintf("%x", sha256.Sum256(b)); err != nil || !strings.Contains(out, sum) {
		t.Errorf("%d octets are there, with sum %s: %v\n%s", len(b), sum, err, out)
	}
	t.Logf("%d restarts lost %d writes; %d commits", restarts, lost, v.commits)
	if lost == 0 {
		t.Error("no write was lost, so the test says nothing")
	}
}

// TestLinuxWhenIdle checks that Linux's client closes a connection on which nothing was called for 300 seconds, and makes another one for the
// next call (LX-31). -idle runs it.
func TestLinuxWhenIdle(t *testing.T) {
	if !*idle {
		t.Skip("-idle runs this for six minutes")
	}
	e := serveNFS(t, localfs.NewMemory(nil), nil, nil)
	p := newProxy(t, e.rdma)
	mounted(t, e.mount(p.port(), ""), 500, "echo 1 > a && sleep 340 && echo 2 >> a && [ $(cat a | wc -l) = 2 ]")
	if n := p.connections(); n != 2 {
		t.Errorf("%d connections were made, not 2", n)
	}
}

// TestLinuxWithGrants checks that Linux's client works with whatever number of calls it may have out (LX-10, LX-12). A server has 4 to 64.
func TestLinuxWithGrants(t *testing.T) {
	installExercise(t)
	for _, credits := range []int{1, 4, 5, 16, 64, 128} {
		t.Run(fmt.Sprint(credits), func(t *testing.T) {
			e := serveNFS(t, localfs.NewMemory(nil), &rpc.ServerOptions{Credits: credits}, nil)
			mounted(t, e.mount(e.port(), "rsize=4096,wsize=4096"), 100,
				"dd if=/dev/urandom of=/tmp/x bs=64k count=16 2>/dev/null && cp /tmp/x a && echo 3 > /proc/sys/vm/drop_caches && cmp a /tmp/x && rm /tmp/x a",
				"exercise -n 30 -goroutines 16 files .")
			until(t, "the connection ends with the mount (LX-32)", func() bool { return e.server.Stats().Connections == 0 })
		})
	}
}

// TestLinuxWithPrivateData checks that Linux's client works with a server that says nothing of its sizes, or other ones than its own, and
// our server with such a client (LX-01, LX-04, LX-05): a proxy changes what they say. A client that says less than it is told is not
// among them: it expects replies that do not fit into what it says.
func TestLinuxWithPrivateData(t *testing.T) {
	installExercise(t)
	says := func(units ...byte) func([]byte) []byte {
		return func(private []byte) []byte {
			if len(units) == 0 {
				return nil
			}
			return append(append([]byte{}, private[:6]...), units...)
		}
	}
	for _, c := range []struct {
		name           string
		request, reply func([]byte) []byte
	}{
		{"nothing from the server", nil, says()},
		{"nothing from either", says(), says()},
		{"2 KiB from the server", nil, says(1, 1)},
		{"2 KiB from both", says(1, 1), says(1, 1)},
		{"8 KiB from the server", nil, says(7, 7)},
		{"another magic from both", func([]byte) []byte { return []byte("whatever") }, func([]byte) []byte { return []byte("whatever") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := serveNFS(t, localfs.NewMemory(nil), nil, nil)
			p := newProxy(t, e.rdma)
			p.request, p.reply = c.request, c.reply
			if p.request == nil {
				p.request = p.keep
			}
			mounted(t, e.mount(p.port(), ""), 100,
				fmt.Sprintf("exercise -seed %d -n 100 random random", *seed),
				"exercise -n 30 files .",
				"for i in $(seq 200); do echo > a-name-of-some-length-$i; done; ls | wc -l")
			if c.request == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				if len(p.private) == 0 || fmt.Sprintf("%x", p.private[0]) != "f6ab0e1801010303" {
					t.Errorf("Linux's client says %x (LX-01)", p.private)
				}
			}
		})
	}
}
