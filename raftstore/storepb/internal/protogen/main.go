// Command protogen generates the Go code of a file of protobuf messages. go generate calls it in the file's
// package. go.mod pins its tools, so every machine generates the same bytes:
//
//	go run lockfs/raftstore/storepb/internal/protogen raftstore/storepb/store.proto
//
// File names are relative to the root of the module, like imports in such files, or to the flag -root. It
// works like protoc, of which versions differ between machines: it compiles, and passes the result to
// protoc-gen-go.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	root := flag.String("root", "", "the `directory` from which files are named, and where the code goes (default the module's)")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: protogen [-root DIRECTORY] FILE")
		os.Exit(2)
	}
	if err := generate(*root, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generate(root, file string) (err error) {
	if root == "" {
		if root, err = moduleRoot(); err != nil {
			return err
		}
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	response, err := protocGenGo(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      withImports(files),
	})
	if err != nil {
		return err
	}
	for _, made := range response.File {
		path := filepath.Join(root, made.GetName())
		if present, err := os.ReadFile(path); err == nil && string(present) == made.GetContent() {
			continue // another process may be compiling it
		}
		if err := os.WriteFile(path, []byte(made.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func moduleRoot() (string, error) {
	path, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(path))), nil
}

// withImports returns files with all their imports, each after its own imports.
func withImports(files linker.Files) []*descriptorpb.FileDescriptorProto {
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(file protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).FileDescriptor)
		}
		all = append(all, protoutil.ProtoFromFileDescriptor(file))
	}
	for _, file := range files {
		add(file)
	}
	return all
}

func protocGenGo(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "tool", "protoc-gen-go")
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, response); err != nil {
		return nil, fmt.Errorf("protoc-gen-go's answer: %w", err)
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response, nil
}
