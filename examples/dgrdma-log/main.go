// Log is a log that survives its server: the log is a file which the server offers as memory, and a client appends to it by
// itself. It writes a record (Write), has it brought to the disk (Flush), and moves the tail behind it (Atomic Write, and another Flush).
// When a client says that a record is flushed, the record is in the log, whatever is killed then. The
// server's program makes no call for it.
//
//	dgrdma-log -file journal serve          in one terminal: listens at port 7483 of this machine's loopback interface
//	printf 'one\ntwo\n' | dgrdma-log append   in another one: appends lines, and says of each when it is flushed
//	dgrdma-log -file journal print          prints the records of a file, whether it is served or not
//
// Between machines the server is told its address, dgrdma-log -at tcp:10.0.0.1 serve, and the client where it is,
// dgrdma-log -server tcp:10.0.0.1:7483 append. The file has to be on a disk: tmpfs keeps files in memory, and is refused.
//
// Flush, Verify and Atomic Write are of draft-talpey-rdma-commit, which both sides name as verbs.Commit. The peer carries out requests
// in order, and those behind one that failed not at all: the tail moves only when what it is about to cover
// is on the disk. With -verify the client asks besides for a checksum of the record as the disk has it, before the tail moves.
//
// One client at a time may append. It is given a window of the memory, which ends with its connection, so that one which the
// server believes dead cannot write into what the next one has written. One that is silent for ten seconds (-silence) gives way
// to another that comes.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	set := flag.NewFlagSet("dgrdma-log", flag.ExitOnError)
	file := set.String("file", "journal", "serve or print this file")
	size := set.Int64("size", 16<<20, "make the file so long, if it is shorter")
	at := set.String("at", "tcp:127.0.0.1", "serve at this address of the machine")
	port := set.String("port", "7483", "serve at this port; 0: any")
	where := set.String("server", "tcp:127.0.0.1:7483", "where the server is")
	quiet := set.Duration("silence", silence, "serve: a writer that is silent for so long gives way to another one")
	verify := set.Bool("verify", false, "have each record read back from the disk")
	set.BoolFunc("h", "print this", func(string) error {
		set.SetOutput(os.Stdout)
		set.Usage()
		os.Exit(0)
		return nil
	})
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "usage: dgrdma-log [flags] serve | append | print")
		set.PrintDefaults()
	}
	set.Parse(os.Args[1:])
	err := check(set)
	switch {
	case err != nil:
	case set.Arg(0) == "serve":
		err = serve(ctx, *file, *size, *at, *port, *quiet, os.Stdout)
	case set.Arg(0) == "append":
		err = appendLines(ctx, *where, *verify, os.Stdin, os.Stdout)
	default:
		err = printFile(*file, os.Stdout)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "dgrdma-log:", err)
		os.Exit(1)
	}
}

// belongs says which flags serve, append and print have.
var belongs = map[string][]string{
	"serve":  {"file", "size", "at", "port", "silence"},
	"append": {"server", "verify"},
	"print":  {"file"},
}

// check refuses what a command line asks for in vain.
func check(set *flag.FlagSet) (err error) {
	role := set.Arg(0)
	has, known := belongs[role]
	if !known {
		set.Usage()
		return errors.New("what is to be done?")
	}
	if n := set.NArg() - 1; n > 0 {
		if strings.HasPrefix(set.Arg(1), "-") {
			return fmt.Errorf("%s: what is %q for? Flags come before %[1]s", role, set.Arg(1))
		}
		return fmt.Errorf("%s takes no argument, and has %d: dgrdma-log [flags] %[1]s", role, n)
	}
	set.Visit(func(f *flag.Flag) {
		if !slices.Contains(has, f.Name) {
			err = fmt.Errorf("-%s means nothing to %s, which has -%s", f.Name, role, strings.Join(has, ", -"))
		}
	})
	return err
}

// appendLines appends the lines of in.
func appendLines(ctx context.Context, server string, verify bool, in io.Reader, out io.Writer) error {
	w, err := Dial(ctx, server, verify)
	if err != nil {
		return err
	}
	defer w.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxData+len("\r\n"))
	line := 1
	for ; lines.Scan(); line++ {
		number, err := w.Append(ctx, lines.Bytes())
		if err != nil {
			return atLine(line, err)
		}
		if _, err := fmt.Fprintf(out, "%d is flushed\n", number); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return atLine(line, errTooLong)
	}
	return lines.Err()
}

// atLine says how far it came.
func atLine(line int, err error) error {
	return fmt.Errorf("line %d: %w; those before it are flushed: append it, and those behind it, again", line, err)
}

// printFile prints the records of a file.
func printFile(name string, out io.Writer) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	print := bufio.NewWriter(out)
	_, err = scan(b, func(number uint64, data []byte) { fmt.Fprintf(print, "%d %s\n", number, data) })
	return errors.Join(err, print.Flush())
}
