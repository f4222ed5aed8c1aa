package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// command is a sub-command: it reads its own flags.
type command struct {
	name, summary string
	run           func(ctx context.Context, fs *flag.FlagSet, args []string, stdout, stderr io.Writer) error
}

var commands = []command{
	{"bench", "measure throughput and completion times between two endpoints", bench},
	{"ping", "measure how long a write takes to arrive", ping},
	{"demo", "move 64 MiB between two endpoints over a lossy simulated network, and verify them", demo},
}

// usageError is a mistake in the command line, as opposed to a failure.
type usageError struct{ error }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "-h", "--help", "help":
		usage(stdout)
		return exitOK
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		fs := flag.NewFlagSet("dgrdmacat "+c.name, flag.ContinueOnError)
		fs.SetOutput(stderr)
		err := c.run(ctx, fs, args[1:], stdout, stderr)
		var bad usageError
		switch {
		case err == nil:
			return exitOK
		case errors.Is(err, flag.ErrHelp):
			return exitOK
		case errors.As(err, &bad):
			fmt.Fprintf(stderr, "dgrdmacat %s: %v\n", c.name, err)
			return exitUsage
		}
		fmt.Fprintf(stderr, "dgrdmacat %s: %v\n", c.name, err)
		return exitError
	}
	fmt.Fprintf(stderr, "dgrdmacat: no command %q\n", args[0])
	usage(stderr)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: dgrdmacat COMMAND [flags]; \"dgrdmacat COMMAND -h\" explains one")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
}

// parse reads flags; what is wrong with them is a usage error. Flags are
// printed by the flag package itself, help to stdout.
func parse(fs *flag.FlagSet, args []string, stdout io.Writer, intro string) error {
	stderr := fs.Output()
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "usage: %s [flags]\n\n%s\n\n", fs.Name(), intro)
		fs.PrintDefaults()
	}
	for _, a := range args {
		if a == "-h" || a == "-help" || a == "--help" {
			fs.SetOutput(stdout)
		}
	}
	err := fs.Parse(args)
	fs.SetOutput(stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return usageError{err}
	case fs.NArg() > 0:
		return usageError{fmt.Errorf("unexpected argument %q", fs.Arg(0))}
	}
	return nil
}
