package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/internal/refused"
)

// Exit codes. A mistake in the command line is one of what it says by itself, or asks the other side for; what is wrong with a file,
// a name or an address that it names is a failure.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
	// exitInterrupted is what a shell says of who was ended by SIGINT, as we are where work
	// is left undone; see main.
	exitInterrupted = 128 + int(syscall.SIGINT)
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
		&rpingCommand,
		&benchCommand,
		&nfsDemoCommand,
		&nfsServeCommand,
		&nfsLsCommand,
		&nfsCatCommand,
		&nfsGetCommand,
		&nfsPutCommand,
		&nfsRmCommand,
		&rpcinfoCommand,
		&topCommand,
		&decodeCommand,
		&reportCommand,
		&wiresharkCommand,
		&urlCommand,
		&manCommand,
		&completionCommand,
		&keyCommand,
		&versionCommand,
	}
}

func run(ctx context.Context, args []string, std *stdio) int {
	if len(args) == 0 {
		usage(std.err)
		return exitUsage
	}
	switch {
	case asksForVersion(args[0]):
		args[0] = versionCommand.name
	case asksForHelp(args[0]) && (len(args) < 2 || asksForHelp(args[1])):
		return std.ended("dgrdmacat help", usage(std.out))
	case asksForHelp(args[0]):
		words := 2
		if wordsAfter(args[1]) != nil {
			words = min(3, len(args))
		}
		args = append(slices.Clone(args[1:words]), "-h")
	}
	if len(args) > 1 && asksForHelp(args[1]) && wordsAfter(args[0]) != nil {
		return std.ended("dgrdmacat help", groupUsage(std.out, args[0]))
	}
	c, rest, err := find(args)
	if err != nil {
		return std.ended("dgrdmacat", err)
	}
	return std.ended("dgrdmacat "+c.name, c.run(ctx, std, rest), rest...)
}

// ended says why a command with such arguments failed, if it did, and returns the exit code.
func (std *stdio) ended(command string, err error, args ...string) int {
	if err = std.withoutClosedPipe(err); err == nil {
		return exitOK
	}
	if said := (saidError{}); errors.As(err, &said) {
		return said.code
	}
	fmt.Fprintf(std.err, "%s: %s\n", command, inPlain(refused.Files(err), args))
	if bad := (usageError{}); errors.As(err, &bad) && !errors.Is(err, dgrdma.ErrKey) { // keys come from files
		return exitUsage
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, bench.ErrInterrupted) {
		return exitInterrupted
	}
	return exitError
}

// withoutClosedPipe leaves out of an error that the output is a pipe that was closed: who
// closes it, as head does, has enough. What wraps that is a failure of its own.
func (std *stdio) withoutClosedPipe(err error) error {
	if std.isClosedPipe(err) {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !slices.ContainsFunc(joined.Unwrap(), std.isClosedPipe) {
		return err
	}
	return errors.Join(slices.DeleteFunc(slices.Clone(joined.Unwrap()), std.isClosedPipe)...)
}

func (std *stdio) isClosedPipe(err error) bool {
	out, isFile := std.out.(*os.File)
	failed, ok := err.(*fs.PathError)
	return ok && isFile && failed.Path == out.Name() && failed.Err == syscall.EPIPE
}

func asksForHelp(arg string) bool {
	return slices.Contains([]string{"-h", "-help", "--help", "help"}, arg)
}

func asksForVersion(arg string) bool {
	return slices.Contains([]string{"-v", "-version", "--version"}, arg)
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
