package wires

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// childVariable in the environment makes the test binary a process with one
// endpoint, which does what it reads from its standard input.
const childVariable = "DGRDMA_WIRES_CHILD"

// order is what a child is told to do, the first word that is there; answer is
// what it says.
type (
	order struct {
		Open   string `json:",omitempty"` // open this endpoint string, with a ledger
		Dial   string `json:",omitempty"` // connect
		Send   int    `json:",omitempty"` // so many transactions to whom it dialed last
		Verify bool   `json:",omitempty"` // that as many as Want arrived from each source

		AtMostOnce bool `json:",omitempty"` // verify that nothing arrived twice, or wrong

		Host   string `json:",omitempty"` // open a host of links on this endpoint string, with a port
		Accept int    `json:",omitempty"` // a link that brings so many messages, or any number if negative, and end of file

		ID, First, Slots, Size int `json:",omitempty"`
		Want                   map[frame.EndpointID]int
	}
	answer struct {
		Err         string
		URL         string
		ID          frame.EndpointID
		Completions int
		Stats       dgrdma.Stats
	}
)

func childMain() int {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var c childState
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return c.end()
			}
			fmt.Fprintln(os.Stderr, "child:", err)
			return 1
		}
		a := c.obey(o)
		if err := out.Encode(a); err != nil {
			return 1 // the test is gone
		}
	}
}

// childPort is the port on which children receive.
const childPort = "numbers"

type childState struct {
	own    *dgrdma.Endpoint
	ledger *ledger
	to     *dgrdma.Conn
	flow   *flow
	host   *link.Host
	port   *link.Listener
}

func (c *childState) end() int {
	if c.host != nil {
		c.host.Close()
	}
	if c.own != nil {
		c.own.Close()
	}
	if left := fixture.Outliving(); left != "" {
		fmt.Fprintln(os.Stderr, "child: goroutines left behind:\n"+left)
		return 1
	}
	return 0
}

func (c *childState) obey(o order) (a answer) {
	var err error
	switch {
	case o.Open != "":
		c.ledger = newLedger(o.Slots, o.Size)
		c.own, err = dgrdma.Open(o.Open, &dgrdma.Config{ID: frame.EndpointID(o.ID), Memory: c.ledger})
	case o.Dial != "":
		if c.to, err = c.own.Dial(o.Dial); err == nil {
			c.flow = newFlow(c.own.ID(), c.to, o.First, o.Slots, o.Size)
		}
	case o.Host != "":
		if c.host, err = link.Open(o.Host, &link.Config{Memory: 1 << 20, Endpoint: dgrdma.Config{ID: frame.EndpointID(o.ID)}}); err == nil {
			c.port, err = c.host.Listen(childPort, &link.Options{Buffers: 8, Size: 10_000})
		}
	case o.Accept != 0:
		var l *link.Link
		if l, err = c.port.Accept(context.Background()); err == nil {
			err = receiveNumbers(l.In, o.Accept)
		}
	case o.Send > 0:
		err = c.flow.send(o.Send)
	case o.AtMostOnce:
		err = c.ledger.verifyAtMostOnce()
	case o.Verify:
		err = c.ledger.verify(o.Want)
	}
	if err != nil {
		a.Err = err.Error()
	}
	if c.host != nil {
		a.URL, a.ID = c.host.URL(), c.host.Endpoint().ID()
	}
	if c.own != nil {
		a.URL, a.ID, a.Stats, a.Completions = c.own.URL(), c.own.ID(), c.own.Stats(), c.ledger.completions()
	}
	return a
}

// child is a process in a namespace.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   *os.File
	out  *os.File
	dec  *json.Decoder
	gone bool
	id   frame.EndpointID
}

// spawn starts a process that ends with the test. credential nil: as root.
func spawn(t *testing.T, ns *netns.Namespace, credential *syscall.Credential, capabilities ...uintptr) *child {
	t.Helper()
	// By that name the binary can be started by who may not look into the
	// directory where it is.
	c := &child{t: t, cmd: exec.Command("/proc/self/exe")}
	c.cmd.Env = append(os.Environ(), childVariable+"=1", "GORACE=atexit_sleep_ms=0")
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential, AmbientCaps: capabilities, Pdeathsig: syscall.SIGKILL}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out, c.dec = in, out, json.NewDecoder(out)
	c.cmd.Stdin, c.cmd.Stdout = theirIn, theirOut
	started := make(chan struct{})
	starter() <- func() {
		ns.In(func() { err = c.cmd.Start() })
		close(started)
	}
	<-started
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.end)
	return c
}

// starter returns the goroutine that starts processes. With Pdeathsig they die
// with the thread that started them: this one stays, whereas endpoints end theirs.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go startProcesses(work)
	return work
})

func startProcesses(work <-chan func()) {
	runtime.LockOSThread()
	for f := range work {
		f()
	}
}

// end lets the process end by itself, if it still can.
func (c *child) end() {
	c.in.Close()
	defer c.out.Close()
	if c.gone {
		return
	}
	timer := time.AfterFunc(patience, func() { c.cmd.Process.Kill() })
	defer timer.Stop()
	c.signal(syscall.SIGCONT)
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("child: %v", err)
	}
}

// kill ends the process in the midst of what it does.
func (c *child) kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	c.cmd.Wait()
	c.gone = true
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// start gives an order, and returns what waits for the answer.
func (c *child) start(o order) (answered func() answer) {
	c.t.Helper()
	if err := json.NewEncoder(c.in).Encode(o); err != nil {
		c.t.Fatalf("child: %v", err)
	}
	return func() (a answer) {
		c.t.Helper()
		c.out.SetReadDeadline(time.Now().Add(patience + 10*time.Second))
		if err := c.dec.Decode(&a); err != nil {
			c.t.Fatalf("child: %v", err)
		}
		return a
	}
}

// ask is start that waits.
func (c *child) ask(o order) answer {
	c.t.Helper()
	return c.start(o)()
}

// must is ask for what cannot fail.
func (c *child) must(o order) answer {
	c.t.Helper()
	a := c.ask(o)
	if a.Err != "" {
		c.t.Fatalf("child: %s\n%+v", a.Err, a.Stats)
	}
	c.id = a.ID
	return a
}

// verify checks that what the flows posted arrived at the child, once.
func (c *child) verify(flows ...*flow) answer {
	c.t.Helper()
	want := make(map[frame.EndpointID]int)
	for _, f := range flows {
		want[f.from] += f.posted()
	}
	return c.must(order{Verify: true, Want: want})
}

// counts is what one source sent.
func counts(from frame.EndpointID, n int) map[frame.EndpointID]int {
	return map[frame.EndpointID]int{from: n}
}
