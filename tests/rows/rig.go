package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// place is where a row is measured. The zero place is the loopback interface.
type place struct {
	mtu     int // of a cable between two namespaces; 0: none
	ether   bool
	tcp     bool   // RDMA over TCP
	options string // of both endpoint strings
	sealed  bool   // under a key that both ends are given
}

// bySeals is the same place for sealed connections.
func (p place) bySeals() place {
	p.sealed = true
	return p
}

// overTCP is the same place for queue pairs.
func (p place) overTCP() place {
	p.tcp = true
	return p
}

func cable(mtu int) place      { return place{mtu: mtu} }
func etherCable(mtu int) place { return place{mtu: mtu, ether: true} }

func (p place) with(options string) place {
	p.options = options
	return p
}

func (p place) namespaces() bool { return p.mtu != 0 }

// The two ends.
const (
	client = 0
	server = 1
)

// address returns the IP address of an end.
func (p place) address(end int) netip.Addr {
	if !p.namespaces() {
		return netip.MustParseAddr("127.0.0.1")
	}
	return netns.IPv4(end)
}

// local returns the endpoint string of an end.
func (g *rig) local(end int) string {
	p := g.row.place
	s := "udp:" + p.address(end).String()
	if p.tcp {
		s = "tcp:" + p.address(end).String()
	}
	if p.ether {
		s = "ether:" + netns.Device
	}
	options := p.options
	if p.sealed {
		options = strings.TrimPrefix(options+"&key-file="+g.key(), "&")
	}
	if options != "" {
		s += "?" + options
	}
	return s
}

// key is the file of the key that both ends are given.
func (g *rig) key() string { return filepath.Join(g.dir, "key") }

// rig is what one run needs.
type rig struct {
	ctx   context.Context
	row   *row
	opt   options
	tools *tools
	pair  netns.Pair
	alone *netns.Namespace // of both ends, with nothing but the loopback interface; nil: they are in the one of this program
	// anywhere is true if the client has no --local: it leaves the choice of an address to the system.
	anywhere bool
	dir      string
	loops    []*exec.Cmd
}

func newRig(ctx context.Context, r *row, o options, t *tools) (*rig, error) {
	g := &rig{ctx: ctx, row: r, opt: o, tools: t}
	var err error
	if g.dir, err = os.MkdirTemp(t.dir, r.name+"."); err != nil {
		return nil, err
	}
	if r.place.sealed {
		if err := os.WriteFile(g.key(), []byte(seal.NewKey().Text()+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	if !r.place.namespaces() {
		if r.overTCP() && netns.Missing() == "" {
			g.alone, err = netns.Open()
		}
		return g, err
	}
	if g.pair, err = netns.OpenPair(r.place.mtu); err != nil {
		return nil, err
	}
	for _, n := range g.pair {
		if err == nil && r.loss > 0 {
			err = n.LoseIPv4(r.loss)
		}
	}
	if err != nil {
		g.close()
	}
	return g, err
}

func (g *rig) close() {
	for _, c := range g.loops {
		c.Process.Kill()
		c.Wait()
	}
	g.pair.Close()
	if g.alone != nil {
		g.alone.Close()
	}
	os.RemoveAll(g.dir)
}

// namespace returns that of an end; nil: it has none of its own.
func (g *rig) namespace(end int) *netns.Namespace {
	if n := g.pair[end]; n != nil {
		return n
	}
	return g.alone
}

// startLoops makes the machine busy, if the row wants it to be.
func (g *rig) startLoops() error {
	if !g.row.busy {
		return nil
	}
	return g.beBusy()
}

// beBusy starts a busy loop for each processor.
func (g *rig) beBusy() error {
	for range runtime.NumCPU() {
		p := g.command(client, g.tools.self)
		p.Env = append(os.Environ(), roleVariable+"=spin")
		if err := g.start(p); err != nil {
			return err
		}
		g.loops = append(g.loops, p.Cmd)
	}
	return nil
}

// process is a program at one end.
type process struct {
	*exec.Cmd
	end      int
	sockets  int // to which a client talks; 0: one
	out, err bytes.Buffer
}

// patience is how long a program may take beyond what it is told to.
const patience = 2 * time.Minute

func (g *rig) command(end int, program string, args ...string) *process {
	p := &process{Cmd: exec.CommandContext(g.ctx, program, args...), end: end}
	p.Stdout, p.Stderr = &p.out, &p.err
	// ^C is this program's to act upon; when it is killed, they are. No thread of it ends before.
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.WaitDelay = time.Second
	return p
}

// start starts a program in the namespace of its end.
func (g *rig) start(p *process) (err error) {
	if n := g.namespace(p.end); n != nil {
		n.In(func() { err = p.Start() })
		return err
	}
	return p.Start()
}

// ended waits for a program that has said what it is to do.
func (p *process) ended(within time.Duration) error {
	late := time.AfterFunc(within, func() { p.Process.Kill() })
	defer late.Stop()
	if err := p.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(p.Args, " "), err, strings.TrimSpace(p.err.String()))
	}
	return nil
}

// run runs a program to its end.
func (g *rig) run(p *process) error {
	if err := g.start(p); err != nil {
		return err
	}
	return p.ended(g.opt.long*10 + patience)
}

// serve starts a server, and waits for the URL that it writes.
func (g *rig) serve(command string, args ...string) (p *process, url string, err error) {
	file := filepath.Join(g.dir, "url")
	os.Remove(file)
	p = g.command(server, g.tools.dgrdmacat, append(append([]string{command, "--url-file", file}, args...), g.local(server))...)
	if err := g.start(p); err != nil {
		return nil, "", err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			return p, strings.TrimSpace(string(b)), nil
		}
		if time.Now().After(deadline) || g.ctx.Err() != nil || p.dead() {
			p.Process.Kill()
			p.Wait()
			return nil, "", fmt.Errorf("%s did not come up: %s", strings.Join(p.Args, " "), strings.TrimSpace(p.err.String()))
		}
	}
}

// dead reports whether a program has ended, of which nobody has asked yet.
func (p *process) dead() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// both runs a server for one client and the client, and returns what the client says as JSON.
func (g *rig) both(command string, serverArgs, clientArgs []string) (map[string]any, error) {
	s, url, err := g.serve(command, append(append([]string{"--once"}, serverArgs...), "--serve")...)
	if err != nil {
		return nil, err
	}
	args := append([]string{command, "--json", "--to", url}, clientArgs...)
	if !g.anywhere {
		args = append(args, "--local", g.local(client))
	}
	c := g.command(client, g.tools.dgrdmacat, args...)
	if err := g.run(c); err != nil {
		s.Process.Kill()
		return nil, errors.Join(err, s.ended(patience))
	}
	if err := s.ended(patience); err != nil {
		return nil, err
	}
	return g.figuresOf(s, c)
}

// perByte is the processor time of both ends that a byte took: in ns per kB, which is us per MB.
const perByte = "cpu_ns_per_kb"

// figuresOf returns what a client says as JSON. Where it does not say what processor time the bytes took, that is all of what both programs took, their
// start included.
func (g *rig) figuresOf(s, c *process) (map[string]any, error) {
	o, err := g.object(c)
	if err != nil {
		return nil, err
	}
	moved := number(o, "mb_per_s") > 0 // else bytes are those of a ping
	if bytes := number(o, "bytes"); moved && bytes > 0 && number(o, perByte) == 0 {
		took := s.ProcessState.UserTime() + s.ProcessState.SystemTime() + c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		o[perByte] = float64(took.Nanoseconds()) / bytes * 1e3
	}
	return o, nil
}

func (g *rig) object(c *process) (got map[string]any, err error) {
	if err := json.Unmarshal(c.out.Bytes(), &got); err != nil {
		return nil, fmt.Errorf("%s printed no object: %w: %s", strings.Join(c.Args, " "), err, c.out.String())
	}
	return got, nil
}

func compile(ctx context.Context, to string, what ...string) error {
	args := []string{"build"}
	if what[0] == "-C" {
		args = append(args, what[:2]...)
		what = what[2:]
	}
	c := exec.CommandContext(ctx, "go", append(append(args, "-o", to), what...)...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(c.Args[1:], " "), err, out)
	}
	return nil
}
