package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// process is one life of a side.
type process struct {
	orders
	cmd     *exec.Cmd
	mem     *shared
	shared  *shared // the journal
	journal *journal
	exited  chan struct{}
	ready   instant // 0: not yet
	judged  bool    // it is over
}

// start begins a life. The process ends with the thread that starts it.
func start(o orders, ns *netns.Namespace, b board, boardFile *os.File) (*process, error) {
	p := &process{orders: o, exited: make(chan struct{})}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if p.mem, err = newShared("memory", memorySize); err != nil {
		return nil, err
	}
	if p.shared, err = newShared("journal", journalSize); err != nil {
		return nil, err
	}
	if p.journal, err = newJournal(p.shared.mem); err != nil {
		return nil, err
	}
	p.cmd = exec.Command("/proc/self/exe")
	p.cmd.Env = append(os.Environ(), sideVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	p.cmd.ExtraFiles = []*os.File{p.mem.file, p.shared.file, boardFile}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if ns == nil {
		err = p.cmd.Start()
	} else {
		ns.In(func() { err = p.cmd.Start() })
	}
	if err != nil {
		return nil, fmt.Errorf("start a side: %w", err)
	}
	b.setPid(o.Side, p.cmd.Process.Pid)
	go p.wait(b)
	return p, nil
}

// wait waits for the end of the process. As long as its number is on the board nobody else can have it.
func (p *process) wait(b board) {
	var info unix.Siginfo
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	b.setPid(p.Side, 0)
	p.cmd.Wait()
	close(p.exited)
}

func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill ends the process, if it has not ended.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// wasKilled reports whether a process that is gone ended by the signal that nobody can handle.
func (p *process) wasKilled() bool {
	s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

func (p *process) close() {
	p.mem.close()
	p.shared.close()
}
