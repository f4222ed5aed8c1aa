package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/internal/namespace"
)

// pathFlag is --path.
type pathFlag struct {
	text string
	cfg  emulator.Config
}

// String implements [flag.Value].
func (f *pathFlag) String() string { return f.text }

// Set implements [flag.Value].
func (f *pathFlag) Set(text string) (err error) {
	f.cfg, err = emulator.Parse(text)
	f.text = text
	return err
}

func (f *pathFlag) given() bool { return f.text != "" }

// pathMTU is that of the devices at both ends of a path.
const pathMTU = 1500

// saidError is the failure of a process of this command, which has said why.
type saidError struct{ code int }

func (e saidError) Error() string { return fmt.Sprintf("it ended with %d", e.code) }

// insideVariable in the environment says that this process is root of a user namespace.
const insideVariable = "DGRDMACAT_PATH_INSIDE"

// overPath runs both ends over an emulated path.
func (o *benchOptions) overPath(ctx context.Context, fs *flag.FlagSet, std *stdio) error {
	if stray := given(fs, "serve", "to", "once", "url-file", "memory", "metrics"); stray != "" {
		return badUsage("--path runs both ends: leave out %s", stray)
	}
	if given(fs, "loss") != "" {
		return badUsage("--path has losses of its own: write loss=1%% into it, in place of --loss")
	}
	inside := os.Getenv(insideVariable) != ""
	switch why := namespace.Missing(); {
	case why == "":
		return o.runPath(ctx, fs, std)
	case inside:
		return fmt.Errorf("--path in a user namespace: %s; run it as root", why)
	}
	c := ourself(ctx, std, os.Args[1:])
	c.Env = append(os.Environ(), insideVariable+"=yes")
	c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	if err := c.Start(); err != nil {
		return fmt.Errorf("--path needs root, or a user namespace, which this system refuses (%w): run it as root, or see sysctl user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns", err)
	}
	return outcomeOf(c.Wait())
}

// ourself is this program as another process. It gets the signals of the terminal itself.
func ourself(ctx context.Context, std *stdio, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, "/proc/self/exe", args...)
	c.Args[0] = os.Args[0]
	c.Stdin, c.Stdout, c.Stderr = nil, std.out, std.err
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = pathPatience
	return c
}

// outcomeOf is what a process of ours returned.
func outcomeOf(err error) error {
	ended := (*exec.ExitError)(nil)
	if !errors.As(err, &ended) {
		return err
	}
	if ended.Success() { // and was interrupted
		return errInterrupted
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Errorf("%w: ended by %v", errInterrupted, status.Signal())
	}
	return saidError{ended.ExitCode()}
}

// pathPatience is how long an end may take that has been told to end, and a server to begin.
const pathPatience = 30 * time.Second

// runPath makes the path, and runs both ends.
func (o *benchOptions) runPath(ctx context.Context, fs *flag.FlagSet, std *stdio) (err error) {
	ends, ports, err := namespace.OpenFabric(pathMTU)
	if err != nil {
		return fmt.Errorf("--path: %w", err)
	}
	router, err := emulator.Start(o.path.cfg, ports)
	if err != nil {
		return err
	}
	defer router.Close()
	dir, err := os.MkdirTemp("", "dgrdmacat-path.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "url")
	scheme := "udp"
	if given(fs, "op", "no-crc", "strict", "revision") != "" {
		scheme = "tcp"
	}
	args := []string{"bench", "--serve", scheme + ":" + namespace.IPv4(1).String(), "--once", "--url-file", file}
	fs.Visit(func(f *flag.Flag) {
		if slices.Contains([]string{"link", "key-file", "busy-poll", "stream"}, f.Name) { // which both ends need
			args = append(args, dashes(f.Name)+"="+f.Value.String())
		}
	})
	server := ourself(context.WithoutCancel(ctx), &stdio{out: io.Discard, err: new(strings.Builder)}, args)
	ends[1].In(func() { err = server.Start() })
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Wait() }()
	url, err := awaitURL(ctx, file, served)
	if err != nil {
		server.Process.Kill()
		return fmt.Errorf("the server of --path did not begin: %w: %s", err, strings.TrimSpace(server.Stderr.(*strings.Builder).String()))
	}
	args = append(withoutFlag(os.Args[1:], "path"), "--to", url)
	if depth := o.pathDepth(); depth > 0 {
		args = append(args, "--depth", strconv.Itoa(depth))
	}
	if len(o.compare.all) > 0 && time.Duration(o.seconds) < pathTurns*o.path.cfg.Trip {
		fmt.Fprintf(std.err, "--compare: the other protocol connects anew for each of its turns, and takes some round trips of %v to reach its rate: --seconds %d or more compares what both carry in the long run\n",
			o.path.cfg.Trip, int(math.Ceil((pathTurns * o.path.cfg.Trip).Seconds())))
	}
	client := ourself(ctx, std, args)
	ends[0].In(func() { err = client.Start() })
	if err != nil {
		server.Process.Kill()
		return errors.Join(err, <-served)
	}
	err = outcomeOf(client.Wait())
	after := std.out
	if o.json {
		after = std.err
	}
	o.path.report(after, router.Way(0))
	late := time.AfterFunc(pathPatience, func() { server.Process.Kill() })
	defer late.Stop()
	if err != nil {
		server.Process.Kill()
		<-served
		return err
	}
	return cmp.Or(outcomeOf(<-served), err)
}

// pathTurns is how many round trips a turn of --compare has at least that says what a protocol carries in the long run. Arbitrary.
const pathTurns = 50

// pathDepth returns the depth that keeps twice of what the path holds outstanding, within half of the memory of a server. 0: the default is enough, or the
// user chose.
func (o *benchOptions) pathDepth() int {
	full := min(2*int(o.path.cfg.Trip.Seconds()*float64(o.path.cfg.Bottleneck.Rate)/8), servedMemory/2)
	if o.depth != 0 || o.tcp != nil || len(o.sizes) != 1 || full <= bench.Outstanding {
		return 0
	}
	return min(full/(int(o.sizes[0])*max(o.peers, 1))+1, mostDepth)
}

// awaitURL waits until the server has written where it is.
func awaitURL(ctx context.Context, file string, ended <-chan error) (string, error) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for late := time.After(pathPatience); ; {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			return strings.TrimSpace(string(b)), nil
		}
		select {
		case <-look.C:
		case err := <-ended:
			return "", cmp.Or(err, errors.New("it ended"))
		case <-late:
			return "", fmt.Errorf("nothing within %v", pathPatience)
		case <-ctx.Done():
			return "", errInterrupted
		}
	}
}

// withoutFlag returns arguments without a flag and its value.
func withoutFlag(args []string, name string) (rest []string) {
	for i := 0; i < len(args); i++ {
		bare := strings.TrimLeft(args[i], "-")
		switch {
		case bare == args[i]:
		case bare == name:
			i++
			continue
		case strings.HasPrefix(bare, name+"="):
			continue
		}
		rest = append(rest, args[i])
	}
	return rest
}

// report says how all fared at the bottleneck.
func (f *pathFlag) report(w io.Writer, d emulator.Direction) {
	share := 0.
	if d.Frames > 0 {
		share = 100 * float64(d.Dropped) / float64(d.Frames)
	}
	fmt.Fprintf(w, "path         %s: %.3g MB in %d packets came to its bottleneck, %.1f %% dropped there and %d packets lost after it; 95 %% waited %.1f ms at most\n",
		f.text, float64(d.Bytes)/1e6, d.Frames, share, d.Lost, d.Delay95.Seconds()*1e3)
}
