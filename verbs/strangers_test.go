package verbs_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/strangers"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// inUse is the memory of this process, that of stacks included.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// bareSocket connects without anything of Go's in this process that would count for the listener.
func bareSocket(t *testing.T, port int, says []byte) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, says); err != nil && err != unix.EPIPE && err != unix.ECONNRESET {
		t.Fatal(err)
	}
	return fd
}

// Attack R7 (SECURITY.md): whatever strangers send, all of them together take no more memory than
// strangers have, and give it back when they have gone.
func TestStrangersMemory(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector's memory is in the way")
	}
	h, l := listen(t)
	port := l.Addr().(*net.TCPAddr).Port
	half := append([]byte("MPA ID Req Frame"), 0x40, 1, 2, 0) // 512 bytes of private data are to follow
	whole := append(half, make([]byte, 512)...)
	var all []int
	defer func() {
		for _, fd := range all {
			unix.Close(fd)
		}
	}()
	until := func(what string, there func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !there(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", what, h.Stats())
			}
		}
	}
	goroutines := runtime.NumGoroutine()
	before := inUse()
	for range verbs.MostTurnedAway {
		all = append(all, bareSocket(t, port, whole))
		r, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.TurnAway(make([]byte, verbs.MaxPrivate)); err != nil {
			t.Fatal(err)
		}
	}
	for range verbs.Backlog + 200 {
		all = append(all, bareSocket(t, port, whole))
	}
	until("the backlog", func() bool { return h.Stats().Dropped == 200 })
	until("the lobby", func() bool {
		for i := range 100 {
			all = append(all, bareSocket(t, port, half[:len(half)*(i%2)]))
		}
		return h.Stats().Crowded >= 500
	})
	grew := inUse() - before
	t.Logf("%d goroutines, %d bytes", runtime.NumGoroutine()-goroutines, grew)
	if grew > strangers.Memory {
		t.Errorf("strangers take %d bytes, more than %d", grew, strangers.Memory)
	}
	l.Close()
	// The runtime keeps what it knows of goroutines, and some stacks.
	until("memory in use still", func() bool { return inUse() < before+strangers.Memory/4 })
}
