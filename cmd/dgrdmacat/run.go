package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// errInterrupted is why everything ends at ^C.
var errInterrupted = errors.New("interrupted")

// commands are the sub-commands, in the order in which a user meets them.
var commands []*command

func init() {
	// Not an initializer: some of these commands describe all.
	commands = []*command{
		&demoCommand,
		&listenCommand,
		&sendCommand,
		&serveCommand,
		&writeCommand,
		&pingCommand,
		&benchCommand,
		&topCommand,
		&decodeCommand,
		&reportCommand,
		&wiresharkCommand,
		&urlCommand,
		&manCommand,
		&completionCommand,
	}
}

func run(ctx context.Context, args []string, std *stdio) int {
	if len(args) == 0 {
		usage(std.err)
		return exitUsage
	}
	if asksForHelp(args[0]) {
		if len(args) < 2 || asksForHelp(args[1]) {
			if err := usage(std.out); err != nil {
				fmt.Fprintf(std.err, "dgrdmacat help: %v\n", err)
				return exitError
			}
			return exitOK
		}
		args = []string{args[1], "-h"}
	}
	c := commandNamed(args[0])
	if c == nil {
		fmt.Fprintf(std.err, "dgrdmacat: no command %q\n", args[0])
		usage(std.err)
		return exitUsage
	}
	err := c.run(ctx, std, args[1:])
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(std.err, "dgrdmacat %s: %v\n", c.name, err)
	if bad := (usageError{}); errors.As(err, &bad) {
		return exitUsage
	}
	return exitError
}

func asksForHelp(arg string) bool {
	return slices.Contains([]string{"-h", "-help", "--help", "help"}, arg)
}

func commandNamed(name string) *command {
	for _, c := range commands {
		if c.name == name {
			return c
		}
	}
	return nil
}

func usage(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, "usage: dgrdmacat COMMAND [flags] [arguments]; \"dgrdmacat COMMAND -h\" explains one")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-10s  %s\n", c.name, c.summary)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
