# Loads a completion script in a shell of a pseudo-terminal, types each line and TAB, and prints what the line is then.
zmodload zsh/zpty
zpty shell "env TERM=dumb PS1= zsh -f -i"
zpty -w shell "autoload -U compinit; compinit -u -D; source '$1'"
zpty -w shell 'show() { print -r -- "<$BUFFER>"; BUFFER=; zle accept-line }'
zpty -w shell "zle -N show; bindkey '^X' show; bindkey '^I' complete-word; print READ\\Y"
zpty -r shell out '*READY*'
for line in "${@[2,-1]}"; do
  zpty -w -n shell "$line"$'\t\x18'
  zpty -r shell out '*<*>*'
  out=${out##*<}
  out=${out%%>*}
  print -r -- "${out% }"
done
zpty -d shell
