// Command dgrdmacat is the command line of DG/RDMA: one-sided writes over
// datagrams. "dgrdmacat -h" lists what it does.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Who closes our output early is told apart by the error of the write.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Who asks a second time does not want to wait.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], &stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
