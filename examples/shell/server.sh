#!/bin/sh
# A small MCP server in plain shell: it shows the first line of files.
#
# Usage: server.sh FOLDER
#
# Tools: first_line {"name": NAME}   first line of FOLDER/NAME
#        count      {"name": NAME}   bytes of FOLDER/NAME, by the program wc
#        who        {"name": NAME}   who the server is, by the program id
#
# It reads JSON only as far as the protocol's own clients write it, and checks no name.
folder=$1

# field TEXT KEY: the string value of a key.
field() {
	case $1 in
	*"\"$2\":\""*) rest=${1#*"\"$2\":\""} && printf '%s' "${rest%%\"*}" ;;
	esac
}

reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }

# said STATUS TEXT: a tool's result. What would need escaping in JSON is dropped.
said() {
	text=$2
	while :; do
		case $text in
		*[\"\\]*) text=${text%%[\"\\]*}${text#*[\"\\]} ;;
		*) break ;;
		esac
	done
	reply "{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}],\"isError\":$1}"
}

call() {
	name=${line#*\"arguments\":}
	name=$(field "$name" name)
	case $line in
	*'"name":"first_line"'*)
		# read fails at a last line without an end, and still has it.
		if text=$( ({ IFS= read -r first <"$folder/$name" || [ -n "$first" ]; } && printf '%s' "$first") 2>&1); then
			said false "$text"
		else
			said true "$text"
		fi ;;
	*'"name":"count"'*)
		if text=$( (wc -c <"$folder/$name") 2>&1); then said false "$text"; else said true "$text"; fi ;;
	*'"name":"who"'*)
		if text=$(id -u 2>&1); then said false "$text"; else said true "$text"; fi ;;
	*) said true 'no such tool' ;;
	esac
}

tool() {
	printf '{"name":"%s","description":"%s","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}' "$1" "$2"
}

while IFS= read -r line; do
	case $line in
	*'"id":'*) id=${line#*\"id\":} && id=${id%%[,\}]*} ;;
	*) continue ;;
	esac
	case $line in
	*'"method":"initialize"'*)
		reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"lines","version":"1"}}' ;;
	*'"method":"tools/list"'*)
		reply "{\"tools\":[$(tool first_line 'Show the first line of a file.'),$(tool count 'Count the bytes of a file.'),$(tool who 'Show who the server is.')]}" ;;
	*'"method":"tools/call"'*) call ;;
	*'"method":"ping"'*) reply '{}' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id" ;;
	esac
done
