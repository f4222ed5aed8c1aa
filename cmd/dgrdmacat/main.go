// Command dgrdmacat is the command line of DG/RDMA: one-sided writes over
// datagrams. "dgrdmacat -h" lists what it does.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// oneInterrupt is how long signals count as one: timeout(1) and some shells send
// two, one to the process and one to its group.
const oneInterrupt = 300 * time.Millisecond

func main() {
	// That the reader of our output left early is told apart by the error of the write.
	signal.Ignore(syscall.SIGPIPE)
	ctx, interrupt := context.WithCancelCause(context.Background())
	signals, came := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		s := <-signals
		came <- s
		interrupt(errInterrupted)
		time.Sleep(oneInterrupt)
		signal.Stop(signals) // who asks a second time does not want to wait
	}()
	std := &stdio{os.Stdin, os.Stdout, os.Stderr}
	if closedAtStart(syscall.Stdout) {
		std.out = closedOutput{}
	}
	code := run(ctx, os.Args[1:], std)
	select {
	case s := <-came:
		if code == exitInterrupted {
			endBy(s)
		}
	default:
	}
	os.Exit(code)
}

// endBy ends the program as the signal would have that it was told, which a shell has to see
// so that its loop or its script ends too. It returns where the signal is ignored.
func endBy(s os.Signal) {
	signal.Reset(s)
	syscall.Kill(os.Getpid(), s.(syscall.Signal))
	time.Sleep(oneInterrupt) // another thread may take it
}
