// program.go: goroutines, a child, a signal, a socket, preemption.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	var group sync.WaitGroup
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < 20; j++ {
				data, err := os.ReadFile("/etc/passwd")
				if err != nil || len(data) == 0 {
					fmt.Println("read", err)
				}
			}
		}()
	}
	group.Wait()
	out, err := exec.Command("echo", "child").Output()
	fmt.Printf("%q %v\n", out, err)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-signals)
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		connection, _ := listener.Accept()
		io.WriteString(connection, "over tcp")
		connection.Close()
	}()
	connection, err := net.Dial("tcp", listener.Addr().String())
	data, _ := io.ReadAll(connection)
	fmt.Println(string(data), err)
	spin := time.Now()
	for time.Since(spin) < 50*time.Millisecond { // preempted by signals
	}
	os.Exit(4)
}
