package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Streams share the memory of as many blocks as there are in a thousand.
const (
	streamBlock  = 64 << 10
	streamBlocks = 1000
)

// takeStreams reads so many streams to their ends, each in its own blocks of one memory.
func takeStreams(at, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	memory := make([]byte, streamBlocks*streamBlock)
	var all sync.WaitGroup
	for i := range n {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		all.Go(func() {
			defer c.Close()
			for block := i; ; block = (block + n) % streamBlocks {
				if _, err := io.ReadFull(c, memory[block*streamBlock:][:streamBlock]); err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return nil
}

// congestionOf returns the congestion controller that a connection has.
func congestionOf(c *net.TCPConn) (name string) {
	raw, err := c.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
	}
	return name
}

// fillStreams writes a block of one memory to so many streams in turn, for so many seconds, and says what arrived in
// all the time that took.
func fillStreams(to, count, long string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(long, 64)
	if err != nil {
		return err
	}
	streams := make([]*net.TCPConn, n)
	for i := range streams {
		c, err := net.Dial("tcp", to)
		if err != nil {
			return err
		}
		defer c.Close()
		streams[i] = c.(*net.TCPConn)
	}
	memory := make([]byte, streamBlocks*streamBlock)
	for at := range memory {
		memory[at] = byte(at) // else all of it is one page that nobody has written
	}
	began, sent := time.Now(), 0
	for time.Since(began).Seconds() < seconds {
		for block := range streamBlocks {
			if _, err := streams[block%n].Write(memory[block*streamBlock:][:streamBlock]); err != nil {
				return err
			}
			sent += streamBlock
		}
	}
	for _, c := range streams {
		err = errors.Join(err, c.CloseWrite())
	}
	for _, c := range streams {
		if _, end := c.Read(make([]byte, 1)); end != io.EOF {
			err = errors.Join(err, fmt.Errorf("the other side has not read all: %w", end))
		}
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"bytes": sent, "mb_per_s": float64(sent) / 1e6 / time.Since(began).Seconds(), "congestion": congestionOf(streams[0])})
}
