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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], &stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
